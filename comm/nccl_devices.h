// NCCL: collectives between the memories of GPUs. The communicator is compiled for each kind of
// device that has one: `cuda` with the vendor's library, which is loaded when the first
// communicator is made, `emu` with the emulator's.
#pragma once

#include <memory>

#include "comm/host_communicator.h"
#include "kernels/base/device.h"

namespace convoy {

struct NcclOptions {
  double timeout = 60;  ///< seconds until all ranks have come together
};

/// A communicator whose buffers lie in one device's memory. Beside what Communicator says:
/// - Sums are made in NCCL's order, not in that of the ranks; all ranks get the same bits.
/// - Calls run in the order in which they are made, on whatever streams. NCCL knows no tags:
///   messages between two ranks must be received in the order in which they are sent. A message
///   that comes with another tag or size is `communication`.
/// - A send ends when it is received. Exchanges belong between
///   begin_messages() and end_messages().
class NcclCommunicator : public Communicator {
 public:
  /// Messages that are queued between the two begin together at the end: none of them waits for
  /// another one.
  virtual void begin_messages() = 0;
  virtual void end_messages() = 0;
};

/// Whether devices of `type` have NCCL in this build. Loads nothing.
bool has_nccl(DeviceType type);

/// A communicator of those in `group`, for buffers of `device`. Collective; blocks. `group` may go
/// before it; both fail together. `usage` that names ranks which share a GPU, and where this build
/// or machine lacks NCCL.
std::unique_ptr<NcclCommunicator> make_nccl_communicator(HostCommunicator& group,
                                                         const Device& device,
                                                         const NcclOptions& options = {});

/// Version of the library behind `type`, loading it if need be: 22809 is 2.28.9.
int nccl_version(DeviceType type);

namespace cuda {
std::unique_ptr<NcclCommunicator> make_nccl(HostCommunicator& group, const Device& device,
                                            const NcclOptions& options);
int nccl_version();
bool has_nccl();
}  // namespace cuda

namespace emulator {
std::unique_ptr<NcclCommunicator> make_nccl(HostCommunicator& group, const Device& device,
                                            const NcclOptions& options);
int nccl_version();
}  // namespace emulator

}  // namespace convoy
