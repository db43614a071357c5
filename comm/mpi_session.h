// MPI as a whole: started once a process, where a launcher's variables say that there are others,
// and ended when the process ends, unless a rank has failed: MPI_Finalize would wait for it.
#pragma once

#include "comm/mpi_check.h"
#include "comm/world.h"

namespace convoy {

class MpiSession {
 public:
  /// Starts MPI on the first call, which returns when all ranks have come. `usage` if MPI's size or
  /// rank is not the launcher's: then each process is alone, whatever its variables say.
  static MpiSession& start(const World& world);
  /// Whether start() has succeeded, nobody has given up, and MPI still runs.
  static bool runs();
  /// A rank has failed: the process must not wait for the others at its end.
  static void give_up();

  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  MpiSession();
  ~MpiSession();
  void check_world(const World& world);

  bool ours_ = false;  // MPI was started here, not by the program that uses us
};

/// A communicator of MPI that is freed at the end; its errors are returned.
class MpiComm {
 public:
  MpiComm() = default;
  /// Takes over `comm`.
  explicit MpiComm(MPI_Comm comm);
  /// A copy of `other` with messages of its own; collective.
  static MpiComm copy_of(MPI_Comm other);
  /// Those of `other` that share this host's memory, by rank; collective.
  static MpiComm host_of(MPI_Comm other);
  ~MpiComm();
  MpiComm(MpiComm&& other) noexcept;
  MpiComm& operator=(MpiComm&& other) noexcept;

  MPI_Comm get() const { return comm_; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace convoy
