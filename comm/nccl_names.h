// NCCL's names as the communicator calls them. The emulator's header declares functions in
// convoy::emulator. The vendor's library is loaded at the first call of any: here its functions
// are objects of the same names, found before the global functions, which nothing links to.
#pragma once

#include <nccl.h>

#include "kernels/cuda/platform.h"

#ifdef CONVOY_LOADS_NCCL

namespace convoy::cuda {

/// The address of a function of the library. `usage` where there is no library or no such function.
void* find_in_nccl(const char* function);

template <class Function>
class FunctionOfNccl;

template <class Result, class... Arguments>
class FunctionOfNccl<Result(Arguments...)> {
 public:
  constexpr explicit FunctionOfNccl(const char* function) : function_(function) {}
  Result operator()(Arguments... arguments) const {
    return reinterpret_cast<Result (*)(Arguments...)>(find_in_nccl(function_))(arguments...);
  }

 private:
  const char* function_;
};

#define CONVOY_NCCL_NAME(name)                             \
  inline constexpr FunctionOfNccl<decltype(::name)> name { \
#name                                                  \
  }
CONVOY_NCCL_NAME(ncclGetVersion);
CONVOY_NCCL_NAME(ncclGetErrorString);
CONVOY_NCCL_NAME(ncclGetLastError);
CONVOY_NCCL_NAME(ncclGetUniqueId);
CONVOY_NCCL_NAME(ncclCommInitRankConfig);
CONVOY_NCCL_NAME(ncclCommFinalize);
CONVOY_NCCL_NAME(ncclCommDestroy);
CONVOY_NCCL_NAME(ncclCommAbort);
CONVOY_NCCL_NAME(ncclCommGetAsyncError);
CONVOY_NCCL_NAME(ncclAllReduce);
CONVOY_NCCL_NAME(ncclReduce);
CONVOY_NCCL_NAME(ncclBroadcast);
CONVOY_NCCL_NAME(ncclReduceScatter);
CONVOY_NCCL_NAME(ncclAllGather);
CONVOY_NCCL_NAME(ncclSend);
CONVOY_NCCL_NAME(ncclRecv);
CONVOY_NCCL_NAME(ncclGroupStart);
CONVOY_NCCL_NAME(ncclGroupEnd);
#undef CONVOY_NCCL_NAME

}  // namespace convoy::cuda

#endif
