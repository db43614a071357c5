#include "comm/thread_communicator.h"

#include <thread>

#include "comm/channel_communicator.h"
#include "comm/thread_fabric.h"

namespace convoy {

std::vector<std::unique_ptr<HostCommunicator>> make_thread_communicators(
    int n, const ThreadOptions& options) {
  auto fabrics = make_thread_fabrics(n, options.ring);
  CONVOY_CHECK(options.boards.empty() || options.boards.size() == fabrics.size(),
               "thread communicators: {} progress boards for {} workers", options.boards.size(), n);
  const auto abort = std::make_shared<AbortFlag>();
  const int spins = spins_for(n, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<std::unique_ptr<HostCommunicator>> group;
  for (int rank = 0; rank < n; ++rank) {
    ProgressBoard* board = options.boards.empty() ? nullptr : options.boards[rank];
    group.push_back(std::make_unique<ChannelCommunicator>(
        std::move(fabrics[rank]), abort, ChannelOptions{options.order, board, spins}));
  }
  return group;
}

}  // namespace convoy
