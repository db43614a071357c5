// The cores that this process may use, how workers divide them, and threads that keep to theirs.
#pragma once

#include <sched.h>

#include <string>
#include <vector>

namespace convoy {

/// Numbers of cores (hardware threads) of this machine.
using Cores = std::vector<int>;

/// Those of `mask` so that those of one package, and in it those of one physical core, lie side by
/// side.
Cores cores_in_order(const cpu_set_t& mask);
/// By the affinity mask of the process's first thread; in order.
Cores allowed_core_list();
/// Their number, at least 1.
int allowed_cores();
/// The `part`-th of `parts` equal parts; what is left over goes to nobody. Empty where there are
/// more parts than cores.
Cores part_of(const Cores& cores, int part, int parts);
/// "0-3,8"
std::string core_list(Cores cores);

/// Whether the user has told OpenMP where threads run (OMP_PROC_BIND, OMP_PLACES,
/// GOMP_CPU_AFFINITY): then nothing else should.
bool openmp_binds_threads();

/// The calling thread, and those that it starts, run on `cores` from now on. False if the system
/// refuses.
bool bind_thread(const Cores& cores);

/// The calling thread runs on `cores`, if there are any, until the end.
class CoresScope {
 public:
  explicit CoresScope(const Cores& cores);
  ~CoresScope();
  CoresScope(const CoresScope&) = delete;
  CoresScope& operator=(const CoresScope&) = delete;

 private:
  cpu_set_t before_{};
  bool bound_ = false;
};

}  // namespace convoy
