// A process to be killed: it saves a tiny checkpoint, or reads a file and tells its memory.
//   checkpoint_helper save DIR STEP VALUE      checkpoint_helper read FILE
// With FAULT_ALLOCATION=N the N-th allocation of the save throws. Exit code: that of the error's
// kind; 98 if no memory was left; 97 if the N-th allocation never came.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "engine/io/safetensors.h"
#include "kernels/base/error.h"
#include "tests/support/tiny_checkpoint.h"

namespace {

long allocations_left = -1;

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int save(const char* dir, const char* step, const char* value) {
  const convoy::CheckpointContent content = convoy::testing::tiny_checkpoint(std::atoi(value));
  if (const char* number = std::getenv("FAULT_ALLOCATION")) allocations_left = std::atol(number);
  const convoy::SavedCheckpoint saved = convoy::save_checkpoint(dir, std::atoi(step), content);
  for (const std::string& note : saved.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  return allocations_left > 0 ? 97 : 0;
}

int read(const char* path) {
  const long before = peak_kib();
  int code = 0;
  try {
    convoy::read_safetensors(std::string(path));
  } catch (const convoy::Error& error) {
    code = static_cast<int>(error.kind());
  }
  std::fprintf(stderr, "%ld\n", peak_kib() - before);
  return code;
}

}  // namespace

// Not inlined: the compiler would take the pair of malloc and delete for a mistake.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (allocations_left > 0 && --allocations_left == 0) throw std::bad_alloc();
  if (void* memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

int main(int count, char** words) {
  try {
    if (count == 5 && std::strcmp(words[1], "save") == 0) return save(words[2], words[3], words[4]);
    if (count == 3 && std::strcmp(words[1], "read") == 0) return read(words[2]);
    return 2;
  } catch (const convoy::Error& error) {
    std::fprintf(stderr, "%s\n", convoy::describe(error).c_str());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    return 98;
  }
}
