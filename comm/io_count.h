// What the system knows of this process's reading and writing: a rank that loads or saves slowly
// goes on, whatever code of it does so.
#pragma once

#include <cstdint>

namespace convoy {

class IoCount {
 public:
  /// Bytes that read() and write() of all threads have moved so far, without those of this call and
  /// earlier ones; 0 where the system does not count. One object a process, for one thread.
  std::uint64_t bytes();

 private:
  std::uint64_t own_ = 0;
};

}  // namespace convoy
