#include "comm/mpi_library.h"

#include <algorithm>
#include <memory>

#include "comm/mpi_session.h"

namespace convoy {
namespace {

constexpr std::int64_t kLargestCount = std::int64_t{1} << 30;  // MPI counts in int

MPI_Datatype mpi_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::bf16:
      break;
  }
  CONVOY_FAIL(usage, "MPI's all-reduce: it has no values of type {}", name(dtype));
}

void divide(void* values, std::int64_t count, DType dtype, int by) {
  CONVOY_CHECK(dtype == DType::f32 || dtype == DType::f64,
               "MPI's all-reduce: the mean of {} values, expected a floating type", name(dtype));
  if (dtype == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<float*>(values)[i] /= static_cast<float>(by);
  } else {
    for (std::int64_t i = 0; i < count; ++i) static_cast<double*>(values)[i] /= by;
  }
}

void all_reduce_part(MPI_Comm comm, const void* in, void* out, std::int64_t count, DType dtype,
                     Reduction reduction) {
  // The blocking call: MPI's best, as its users have it.
  CONVOY_MPI(MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, static_cast<int>(count),
                           mpi_type(dtype), reduction == Reduction::max ? MPI_MAX : MPI_SUM, comm));
}

}  // namespace

bool has_mpi() {
  return true;
}

HostAllReduce mpi_library_all_reduce() {
  CONVOY_CHECK(MpiSession::runs(), "MPI's all-reduce: no group of MPI has been made");
  auto comm = std::make_shared<MpiComm>(MpiComm::copy_of(MPI_COMM_WORLD));
  return [comm](const void* in, void* out, std::int64_t count, DType dtype, Reduction reduction) {
    const auto element = static_cast<std::int64_t>(size_of(dtype));
    for (std::int64_t begin = 0; begin < count; begin += kLargestCount) {
      all_reduce_part(comm->get(), static_cast<const std::byte*>(in) + begin * element,
                      static_cast<std::byte*>(out) + begin * element,
                      std::min(kLargestCount, count - begin), dtype, reduction);
    }
    if (reduction == Reduction::mean) divide(out, count, dtype, comm->size());
  };
}

}  // namespace convoy
