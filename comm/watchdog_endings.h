// How a process ended: its own last word, told from a signal handler or while it exits, and what
// its neighbours on the same host learn from the system.
#pragma once

#include <string>
#include <vector>

#include "comm/sockets.h"
#include "comm/watchdog_messages.h"

namespace convoy {

/// Equal for processes that see each other under the same numbers: boot and name space.
std::string own_pid_space();

/// While it lives, a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) or exit() of this process is
/// told to the sockets `fds`; afterwards it ends as it would have. One of a process speaks: a
/// second one says nothing.
class LastWord {
 public:
  LastWord(int rank, const std::vector<int>& fds);
  ~LastWord();
  LastWord(const LastWord&) = delete;
  LastWord& operator=(const LastWord&) = delete;

 private:
  bool speaks_ = false;
};

/// The other processes of this host, watched through the system: on kernels from 6.15 on it tells
/// how they ended, even by signal 9.
class Neighbours {
 public:
  Neighbours(const std::vector<Member>& members, int self);
  /// To poll for POLLIN: each becomes readable when its process ends.
  std::vector<int> fds() const;
  /// Who has ended since the last call, and how. An ending that the system does not tell (yet) is
  /// not there.
  std::vector<Word> look();
  /// Whether an ending is still to be asked for.
  bool pending() const;

 private:
  struct Neighbour {
    int rank = 0;
    Descriptor handle;
    bool ended = false;
    int asked = 0;
  };
  std::vector<Neighbour> all_;
};

}  // namespace convoy
