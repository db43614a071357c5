// Shared libraries that are opened when they are first needed: a program that uses none of them
// starts without them.
#pragma once

#include <string>

namespace convoy::cuda::vendor {

/// An open library. It stays open for ever: its threads and handles may outlive any object.
class Library {
 public:
  /// `usage` where this machine has no `file`; `what` is its name for people.
  Library(const char* what, const char* file);

  /// `usage` where the library has no such function.
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;

  std::string what_;
  void* handle_;
};

}  // namespace convoy::cuda::vendor
