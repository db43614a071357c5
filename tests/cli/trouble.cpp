// Loaded into ranks by LD_PRELOAD, so that tests can make one of them misbehave:
//   TROUBLE_RANK=1           the rank; others are left alone
//   TROUBLE_EXIT=FILE        it calls exit(1) when FILE appears
//   TROUBLE_HASH=1           its 128-bit hashes of arrays are others
//   TROUBLE_FSYNC=SECONDS    each fsync takes so much longer
//   TROUBLE_OPEN=TEXT:SECONDS  so does each open of a path that holds TEXT
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

const char* variable(const char* name) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* wanted = std::getenv("TROUBLE_RANK");
  return rank && wanted && std::strcmp(rank, wanted) == 0 ? std::getenv(name) : nullptr;
}

void wait(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void exit_when_it_is_there(const std::string& path) {
  while (::access(path.c_str(), F_OK) != 0) wait(0.01);
  std::exit(1);
}

void slow_down(const char* path) {
  const char* rule = variable("TROUBLE_OPEN");
  const char* colon = rule ? std::strrchr(rule, ':') : nullptr;
  if (!colon) return;
  const std::string text(rule, colon);
  if (std::strstr(path, text.c_str())) wait(std::atof(colon + 1));
}

/// The function of that name that would be called without this library.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

using Open = int(const char*, int, ...);

int open_slowly(const char* function, const char* path, int flags, mode_t mode) {
  slow_down(path);
  return next<Open>(function)(path, flags, mode);
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

__attribute__((constructor)) void start() {
  const char* path = variable("TROUBLE_EXIT");
  if (path) std::thread(exit_when_it_is_there, std::string(path)).detach();
}

}  // namespace

extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_slowly("open", path, flags, mode);
}

extern "C" int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return open_slowly("open64", path, flags, mode);
}

extern "C" int fsync(int file) {
  if (const char* seconds = variable("TROUBLE_FSYNC")) wait(std::atof(seconds));
  return next<int(int)>("fsync")(file);
}

// libxxhash's hash of an array, by its own name and shape.
struct Xxh128 {
  std::uint64_t low, high;
};

extern "C" Xxh128 XXH3_128bits(const void* bytes, std::size_t count) {
  Xxh128 hash = next<Xxh128(const void*, std::size_t)>("XXH3_128bits")(bytes, count);
  if (variable("TROUBLE_HASH")) hash.low ^= 1;
  return hash;
}
