#include "engine/train/stage_links.h"

#include <set>

#include "kernels/base/error.h"

namespace convoy {
namespace {

bool of_activations(const Instruction& transfer) {
  return transfer.op == ScheduleOp::send_activation ||
         transfer.op == ScheduleOp::receive_activation;
}

std::int64_t images_of(const MicroBatch& micro_batch, int replica) {
  return micro_batch.images[static_cast<std::size_t>(replica)];
}

}  // namespace

StageLinks::StageLinks(HostCommunicator& group, const StageMap& map,
                       const StageLinkOptions& options)
    : group_(group),
      map_(map),
      options_(options),
      replica_(options.layout.replica_of(group.rank())) {
  if (options_.layout.workers_per_replica == 1) return;
  const std::vector<int> stages = options_.layout.stages_of(group.rank());
  std::set<int> peers;
  for (int stage : stages) {
    for (int neighbour : {stage - 1, stage + 1}) {
      if (neighbour < 0 || neighbour == map.count()) continue;
      peers.insert(
          options_.layout.rank_of(replica_, neighbour % options_.layout.workers_per_replica));
    }
  }
  group.barrier();  // the test has short limits
  reports_ = test_links(group, {peers.begin(), peers.end()}, kLinkTestTag);
  for (int stage : stages) {
    open(stage, stage - 1);
    open(stage, stage + 1);
  }
}

LinkOptions StageLinks::options_to(int peer) const {
  LinkOptions options;
  options.slots = options_.slots;
  for (const LinkReport& report : reports_) {
    if (report.from == peer) options.clock_offset = report.clock_offset_s;
  }
  return options;
}

std::shared_ptr<ParcelLane> StageLinks::lane(int from, int to, int tag) const {
  return options_.lanes ? options_.lanes->between(from, to, tag) : nullptr;
}

// The edge between two stages is named after the lower one.
void StageLinks::open(int stage, int neighbour) {
  if (neighbour < 0 || neighbour == map_.count()) return;
  const int peer =
      options_.layout.rank_of(replica_, neighbour % options_.layout.workers_per_replica);
  const LinkOptions options = options_to(peer);
  const bool is_after = neighbour > stage;
  const int edge = is_after ? stage : neighbour;
  const auto out = is_after ? LinkDirection::activations : LinkDirection::gradients;
  const auto in = is_after ? LinkDirection::gradients : LinkDirection::activations;
  Edge& made = (is_after ? after_ : before_)[stage];
  const int me = group_.rank(), tag_out = link_tag(edge, out), tag_in = link_tag(edge, in);
  made.sender =
      std::make_unique<TensorSender>(group_, peer, tag_out, options, lane(me, peer, tag_out));
  made.receiver =
      std::make_unique<TensorReceiver>(group_, peer, tag_in, options, lane(peer, me, tag_in));
}

const std::vector<CrossingTensor>& StageLinks::tensors_of(const Instruction& transfer) const {
  const StageEntry& stage = map_.stages[static_cast<std::size_t>(transfer.stage)];
  const bool inputs =
      transfer.op == ScheduleOp::receive_activation || transfer.op == ScheduleOp::send_gradient;
  return inputs ? stage.inputs : stage.outputs;
}

void StageLinks::send(const Instruction& transfer, const MicroBatch& micro_batch,
                      const std::vector<Tensor>& tensors, StateClock& clock) {
  TensorSender& sender = *(of_activations(transfer) ? after_ : before_).at(transfer.stage).sender;
  const std::vector<CrossingTensor>& crossing = tensors_of(transfer);
  std::vector<Tensor> sent;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (of_activations(transfer) || crossing[i].flows) sent.push_back(tensors[i].detach());
  }
  if (sender.would_block()) clock.enter(WorkerState::slot_full, transfer);
  sender.send(micro_batch.batch, transfer.micro_batch, images_of(micro_batch, replica_), sent);
  clock.enter(WorkerState::host, transfer);
}

std::vector<Tensor> StageLinks::receive(const Instruction& transfer, const MicroBatch& micro_batch,
                                        bool runs, StateClock& clock) {
  TensorReceiver& receiver =
      *(of_activations(transfer) ? before_ : after_).at(transfer.stage).receiver;
  const std::vector<CrossingTensor>& crossing = tensors_of(transfer);
  ExpectedTensors expected{micro_batch.batch,
                           transfer.micro_batch,
                           images_of(micro_batch, replica_),
                           {},
                           options_.dtype};
  for (const CrossingTensor& tensor : crossing) {
    if (!runs || !(of_activations(transfer) || tensor.flows)) continue;
    expected.shapes.push_back(tensor.shape.with(0, expected.images));
  }
  clock.enter(WorkerState::starved, transfer);
  ReceivedTensors received = receiver.receive(expected, options_.device);
  clock.split_last(WorkerState::transfer, StateClock::now() - received.sent_at);
  clock.enter(WorkerState::host, transfer);
  if (!runs) return {};
  std::vector<Tensor> all;
  std::size_t next = 0;
  for (const CrossingTensor& tensor : crossing) {
    const bool came = of_activations(transfer) || tensor.flows;
    all.push_back(came ? received.tensors[next++] : Tensor());
  }
  return all;
}

void StageLinks::flush() {
  for (auto* edges : {&before_, &after_}) {
    for (auto& [stage, edge] : *edges) edge.sender->flush();
  }
}

}  // namespace convoy
