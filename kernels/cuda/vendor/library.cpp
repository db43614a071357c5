#include "kernels/cuda/vendor/library.h"

#include <dlfcn.h>

#include "kernels/base/error.h"

namespace convoy::cuda::vendor {

Library::Library(const char* what, const char* file)
    : what_(what), handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* const reason = dlerror();
  CONVOY_FAIL(usage, "--kernels vendor: {} is not here: {} (LD_LIBRARY_PATH may name its folder)",
              what, reason ? reason : file);
}

void* Library::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  CONVOY_CHECK(found, "--kernels vendor: this {} has no {}", what_, name);
  return found;
}

}  // namespace convoy::cuda::vendor
