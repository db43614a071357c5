// Pointers among the arguments of a launch, also inside structs, so that memory of another device
// or freed memory is refused before the kernel runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/emulator/device_memory.h"

namespace convoy::emulator {

/// A pointer that a kernel gets. One that is `embedded` was found in a struct: an aligned word
/// whose value lies in a device's range.
struct ArgumentPointer {
  const void* pointer;
  bool embedded;
};

/// Appends the pointers in `argument`. Memory of the host counts only where it is the argument.
template <class T>
void collect_pointers(const T& argument, std::vector<ArgumentPointer>& found) {
  if constexpr (std::is_pointer_v<T>) {
    if (argument) found.push_back({argument, false});
  } else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T> &&
                       alignof(T) >= sizeof(void*)) {
    for (std::size_t at = 0; at + sizeof(void*) <= sizeof(T); at += sizeof(void*)) {
      const void* word = nullptr;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&argument) + at, sizeof word);
      if (owner_of(word) != kNoOwner) found.push_back({word, true});
    }
  }
}

/// What is wrong with a kernel of `device` using `pointers`: memory of the host, of another device
/// without peer access, or memory that is not allocated. Empty if nothing is.
std::string pointer_problem(int device, const std::vector<ArgumentPointer>& pointers);

}  // namespace convoy::emulator
