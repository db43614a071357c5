// Loads the vendor's NCCL when something of it is first called.
#include <dlfcn.h>

#include "comm/nccl_devices.h"
#include "comm/nccl_names.h"
#include "kernels/base/error.h"

namespace convoy::cuda {
namespace {

struct Library {
  void* handle = nullptr;
  std::string why_not;
};

Library load() {
  Library library;
  for (const char* name : {"libnccl.so.2", CONVOY_NCCL_BESIDE_CUDA}) {
    library.handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library.handle) return library;
    if (library.why_not.empty()) library.why_not = dlerror();
  }
  return library;
}

}  // namespace

void* find_in_nccl(const char* function) {
  static const Library library = load();
  CONVOY_CHECK(library.handle, "nccl: the library cannot be loaded: {}", library.why_not);
  void* address = dlsym(library.handle, function);
  CONVOY_CHECK(address, "nccl: the library has no {}: expected NCCL 2.18 or newer", function);
  return address;
}

bool has_nccl() {
  return true;
}

}  // namespace convoy::cuda
