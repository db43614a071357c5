// A worker outside of its steps: how it is made, forwards alone, state, and what it tells.
#include "engine/train/stage_worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "comm/nccl_devices.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "engine/parallel/pipeline/instruction_mark.h"
#include "engine/train/held_stage.h"
#include "engine/train/model_state.h"
#include "engine/train/stage_memory.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// A worker's part of arrays of the whole network: what other stages own is left out, what nobody
// owns is not, so that it is found. `of_optimizer`: names are "kind/parameter".
std::vector<NamedArray> without(const std::vector<NamedArray>& arrays,
                                const std::set<std::string>& others, bool of_optimizer) {
  std::vector<NamedArray> mine;
  for (const NamedArray& array : arrays) {
    const std::size_t slash = of_optimizer ? array.name.find('/') : std::string::npos;
    const std::string name = slash == std::string::npos ? array.name : array.name.substr(slash + 1);
    if (!others.contains(name)) mine.push_back(array);
  }
  return mine;
}

}  // namespace

StageWorker::StageWorker(Group& group, int local, const PipelineSetup& setup, WorkerParts parts)
    : setup_(setup),
      group_(group.worker(local)),
      board_(group.progress(local)),
      rank_(group_.rank()),
      replica_(setup.layout.replica_of(rank_)),
      options_(parts.options),
      head_(options_),
      control_(group_.split_host(0, rank_)),
      edges_(group_.split_host(0, rank_)),
      replicas_(setup.layout.replicas == 1
                    ? nullptr
                    : group_.split_host(setup.layout.position_of(rank_), replica_)),
      links_(*edges_, setup.map,
             {setup.layout, options_.device, options_.dtype, setup.slots, setup.lanes}),
      agreement_(group_, setup.layout, setup.map) {
  board_.set_kind(setup.layout.position_of(rank_));
  if (replicas_ && setup.nccl) {
    nccl_ = make_nccl_communicator(*replicas_, options_.device, {.timeout = setup.timeout});
  }
  Communicator* const devices = nccl_ ? nccl_.get() : static_cast<Communicator*>(replicas_.get());
  for (int stage : setup.layout.stages_of(rank_)) {
    const StageEntry& entry = setup.map.stages[static_cast<std::size_t>(stage)];
    auto slice = std::make_shared<NetworkSlice>(*parts.network, entry.first, entry.end);
    Held& held = *held_.emplace_back(std::make_unique<Held>(stage, std::move(slice), parts));
    if (!replicas_) continue;
    if (setup.together) {
      held.statistics = devices->split(0, devices->rank());
      set_batch_norm_group(held.slice(), held.statistics.get());
    }
    if (!held.optimizer) continue;
    held.reducer = std::make_unique<Reducer>(
        held.slice().named_parameters(), *replicas_,
        ReducerOptions{.buckets = setup.buckets, .gradients = nccl_.get()});
  }
}

StageWorker::~StageWorker() = default;

bool StageWorker::is_here(int stage) const {
  return stage >= 0 && stage < setup_.map.count() &&
         stage % setup_.layout.workers_per_replica == setup_.layout.position_of(rank_);
}

StageWorker::Held& StageWorker::held(int stage) {
  return *held_.at(static_cast<std::size_t>(stage / setup_.layout.workers_per_replica));
}

bool StageWorker::is_last_stage(int stage) const {
  return stage + 1 == setup_.map.count();
}

void StageWorker::synchronize() const {
  current_stream(options_.device).synchronize();
}

BatchRange StageWorker::images_of(const HostBatch& batch, const MicroBatch& micro_batch) const {
  const auto replica = static_cast<std::size_t>(replica_);
  const std::int64_t begin = batch.image_start(replica_) + micro_batch.begins[replica];
  return {begin, begin + micro_batch.images[replica]};
}

BatchRange StageWorker::labels_of(const HostBatch& batch, const MicroBatch& micro_batch) const {
  const auto replica = static_cast<std::size_t>(replica_);
  const std::int64_t begin = batch.label_start(replica_) + micro_batch.begins[replica];
  return {begin, begin + micro_batch.images[replica]};
}

void StageWorker::pass_on(Held& own, int k, std::vector<Tensor> outputs) {
  const int next = own.number + 1;
  (is_here(next) ? held(next).activations : own.made_activations).put(k, std::move(outputs));
}

bool StageWorker::all_finite(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> values;
  for (const Tensor& tensor : tensors) {
    if (tensor.numel() > 0) values.push_back(tensor.detach());
  }
  const std::vector<double> squares = squared_norms(values);
  return std::all_of(squares.begin(), squares.end(),
                     [](double square) { return std::isfinite(square); });
}

void StageWorker::infer(const ForwardWork& work, const See& see) {
  findings_ = {};
  for (const auto& held : held_) held->slice().eval();
  StateClock clock;
  for (const Instruction& at : work.line) {
    board_.begin_instruction(mark_of(at));
    Held& own = held(at.stage);
    const int k = at.micro_batch;
    if (at.op == ScheduleOp::receive_activation) {
      const bool runs = work.plan.runs(k, replica_);
      own.activations.put(k, links_.receive(at, work.plan.at(k), runs, clock));
    } else if (at.op == ScheduleOp::send_activation) {
      links_.send(at, work.plan.at(k), own.made_activations.take(k), clock);
    } else {
      infer_stage(work, own, k, see);
    }
  }
}

void StageWorker::infer_stage(const ForwardWork& work, Held& own, int k, const See& see) {
  std::vector<Tensor> inputs, outputs;
  if (own.number > 0) inputs = own.activations.take(k);
  const bool runs = work.plan.runs(k, replica_);
  if (runs) {
    if (own.number == 0) {
      inputs = {head_.input(work.batch, images_of(work.batch, work.plan.at(k)))};
    }
    outputs = own.computation.infer(inputs);
    synchronize();
    own.has_layouts = true;
  }
  if (is_last_stage(own.number)) {
    if (runs) see(k, inputs, outputs.front());
    return;
  }
  if (!all_finite(outputs)) {
    findings_.note_bad_value(k, own.computation.first_non_finite(inputs));
  }
  pass_on(own, k, std::move(outputs));
}

EvalSums StageWorker::evaluate(const ForwardWork& work) {
  infer(work, [&](int k, const std::vector<Tensor>& inputs, const Tensor& output) {
    const NoGradScope no_grad;
    const BatchRange range = labels_of(work.batch, work.plan.at(k));
    const double loss = head_.add_to(findings_.sums, work.batch, range, output);
    findings_.note_loss(k, loss);
    if (std::isfinite(loss)) return;
    findings_.note_bad_value(k, held(setup_.map.count() - 1).computation.first_non_finite(inputs));
  });
  return agreement_.evaluation(findings_);
}

std::vector<double> StageWorker::predict(const ForwardWork& work) {
  std::vector<double> values;
  infer(work, [&](int, const std::vector<Tensor>&, const Tensor& output) {
    const std::vector<double> rows = output.to_vector<double>();
    values.insert(values.end(), rows.begin(), rows.end());
  });
  links_.flush();  // nothing that follows tells this worker that the next one has it all
  return values;
}

void StageWorker::send_statistics() {
  if (!replicas_) return;
  NamedTensors buffers;
  for (const auto& held : held_) {
    for (auto& buffer : held->slice().named_buffers()) buffers.push_back(buffer);
  }
  if (buffers.empty()) return;
  std::vector<NamedArray> arrays = to_arrays(buffers);
  std::vector<std::byte> values;
  for (const NamedArray& array : arrays) {
    values.insert(values.end(), array.bytes.begin(), array.bytes.end());
  }
  replicas_->broadcast_now(values.data(), values.size(), 0);
  if (replica_ == 0) return;
  const std::byte* next = values.data();
  for (NamedArray& array : arrays) {
    std::memcpy(array.bytes.data(), next, array.bytes.size());
    next += array.bytes.size();
  }
  const NamedTensors received = to_tensors(arrays);
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].second.copy_(received[i].second);
}

std::vector<NamedArray> StageWorker::state() {
  std::vector<NamedArray> all;
  for (const auto& held : held_) {
    for (NamedArray& array : finite_state(held->slice(), step_)) all.push_back(std::move(array));
  }
  return all;
}

std::vector<NamedArray> StageWorker::optimizer_state() const {
  std::vector<NamedArray> all;
  for (const auto& held : held_) {
    if (!held->optimizer) continue;
    for (NamedArray& array : to_arrays(held->optimizer->state_dict())) {
      all.push_back(std::move(array));
    }
  }
  return all;
}

std::vector<NamedArray> StageWorker::gradients() const {
  std::vector<NamedArray> all;
  for (const auto& held : held_) {
    for (NamedArray& array : gradient_arrays(held->slice())) all.push_back(std::move(array));
  }
  return all;
}

std::int64_t StageWorker::optimizer_steps() const {
  for (const auto& held : held_) {
    if (held->optimizer) return held->optimizer->steps();
  }
  return 0;
}

std::size_t StageWorker::states_per_parameter() const {
  for (const auto& held : held_) {
    if (held->optimizer) return held->optimizer->states_per_parameter();
  }
  return 0;
}

void StageWorker::load(const TrainingTensors& tensors) {
  for (const auto& held : held_) {
    std::set<std::string> others(setup_.map.state.begin(), setup_.map.state.end());
    for (const auto& [name, tensor] : held->slice().state_dict()) others.erase(name);
    held->slice().load_state_dict(to_tensors(without(tensors.model, others, false)));
    if (!held->optimizer) continue;
    held->optimizer->load_state_dict(to_tensors(without(tensors.optimizer, others, true)),
                                     tensors.optimizer_steps);
  }
}

void StageWorker::measure_memory(std::int64_t images, bool splits) {
  for (const auto& held : held_) {
    StageRun run;
    run.is_last = held->number + 1 == setup_.map.count();
    run.splits = splits;
    run.states = held->optimizer ? static_cast<double>(held->optimizer->states_per_parameter()) : 0;
    run.buckets = setup_.buckets;
    run.has_replicas = held->reducer != nullptr;
    run.images = images;
    const auto& entry = setup_.map.stages[static_cast<std::size_t>(held->number)];
    held->memory = measure_stage_memory(held->computation.shared_slice(), entry, options_, run);
  }
}

WorkerReport StageWorker::report() const {
  WorkerReport report;
  report.account.worker = rank_;
  report.account.replica = replica_;
  report.account.steps = steps_;
  report.account.measured = seconds_;
  report.account.peak_bytes =
      static_cast<double>(context(options_.device).memory().statistics().peak_in_use);
  report.links = links_.reports();
  if (instructions_ > 0) {
    report.host_s = at(seconds_, WorkerState::host) / static_cast<double>(instructions_);
  }
  const double parts = static_cast<double>(std::max<std::int64_t>(steps_, 1) * std::ssize(held_));
  const double exposed = reduce_times().exposed - reduced_.exposed;
  for (const auto& held : held_) {
    report.account.stages.push_back(held->number);
    StageReport& stage = report.stages.emplace_back();
    stage.stage = held->number;
    stage.cost.times = held->samples.times();
    stage.cost.memory = held->memory;
    stage.cost.step_s = at(seconds_, WorkerState::optimizer) / parts;
    stage.cost.all_reduce_s = exposed / parts;
    stage.recompute = held->samples.recompute_times();
  }
  return report;
}

void StageWorker::reset_times() {
  seconds_ = {};
  steps_ = instructions_ = 0;
  reduced_ = reduce_times();
}

ReduceTimes StageWorker::reduce_times() const {
  ReduceTimes sum;
  for (const auto& held : held_) {
    if (!held->reducer) continue;
    sum.all_reduce += held->reducer->times().all_reduce;
    sum.exposed += held->reducer->times().exposed;
  }
  return sum;
}

}  // namespace convoy
