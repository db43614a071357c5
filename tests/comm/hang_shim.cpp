// Loaded into a rank by LD_PRELOAD: it stops for good after a call of the function that
// HANG_AFTER names.
//   memfd_create  in the middle of the meeting over MPI: it looks for shared memory
//   getrandom     MPI has joined the ranks, and rank 0 is about to say where the watchdogs meet
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

namespace {

bool shares_memory = false;

void hang_after(const char* function) {
  const char* wanted = std::getenv("HANG_AFTER");
  if (wanted && std::strcmp(wanted, function) == 0) ::raise(SIGSTOP);
}

}  // namespace

extern "C" int memfd_create(const char* name, unsigned flags) noexcept {
  shares_memory = true;
  hang_after("memfd_create");
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}

extern "C" ssize_t getrandom(void* bytes, std::size_t count, unsigned flags) {
  if (shares_memory) hang_after("getrandom");  // MPI's own calls come before
  return ::syscall(SYS_getrandom, bytes, count, flags);
}
