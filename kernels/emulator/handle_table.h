// Objects behind the opaque handles of the runtime: a call with a handle that was destroyed, or
// never was one, is an error here and not a crash.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace convoy::emulator {

/// Thread-safe. An object lives until it is removed and its last user is done.
template <class T>
class HandleTable {
 public:
  T* add(std::shared_ptr<T> object) {
    std::lock_guard lock(mutex_);
    T* const handle = object.get();
    objects_[handle] = std::move(object);
    return handle;
  }
  /// Null if there is none.
  std::shared_ptr<T> find(T* handle) const {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Takes it out; null if there is none.
  std::shared_ptr<T> remove(T* handle) {
    std::lock_guard lock(mutex_);
    auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }

 private:
  mutable std::mutex mutex_;
  std::map<T*, std::shared_ptr<T>> objects_;
};

/// The process's table of objects of that type.
template <class T>
HandleTable<T>& handles() {
  static auto* const table = new HandleTable<T>;
  return *table;
}

}  // namespace convoy::emulator
