#include "engine/train/stage_worker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/nn/state.h"
#include "engine/parallel/pipeline/instruction_mark.h"
#include "engine/train/model_state.h"
#include "engine/train/stage_memory.h"
#include "kernels/base/context.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

using Waiting = std::map<int, std::vector<Tensor>>;  // by micro-batch

std::vector<Tensor> take(Waiting& waiting, int k) {
  const auto found = waiting.find(k);
  CONVOY_DCHECK(found != waiting.end(), "stage: nothing is here for micro-batch {}", k);
  std::vector<Tensor> tensors = std::move(found->second);
  waiting.erase(found);
  return tensors;
}

bool all_finite(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> values;
  for (const Tensor& tensor : tensors) {
    if (tensor.numel() > 0) values.push_back(tensor.detach());
  }
  const std::vector<double> squares = squared_norms(values);
  return std::all_of(squares.begin(), squares.end(),
                     [](double square) { return std::isfinite(square); });
}

// A worker's part of arrays of the whole network: what other stages own is left out, what nobody
// owns is not, so that it is found. `prefix_ends`: names are "kind/parameter".
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

struct StageWorker::Held {
  Held(int stage, std::shared_ptr<NetworkSlice> slice, WorkerParts& parts)
      : number(stage), computation(slice, parts.options.recompute) {
    slice->materialize(parts.options.device, parts.options.dtype, parts.seed);
    slice->to(parts.options.dtype);
    slice->to(parts.options.device);
    const NamedTensors parameters = slice->named_parameters();
    if (!parameters.empty()) optimizer = parts.make_optimizer(parameters);
  }

  NetworkSlice& slice() { return computation.slice(); }

  int number;
  Stage computation;
  std::unique_ptr<Optimizer> optimizer;  // none without parameters
  std::unique_ptr<Communicator> statistics;
  std::unique_ptr<Reducer> reducer;  // with several replicas
  bool has_layouts = false;          // the weights, since a first forward
  PhaseSamples samples;
  StageMemory memory;  // once measured
  // What has come for F and I, and what they have made for the neighbours.
  Waiting activations, gradients;
  Waiting made_activations, made_gradients;
};

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
      links_(*edges_, setup.map, {setup.layout, options_.device, options_.dtype, setup.slots}),
      agreement_(group_, setup.layout, setup.map) {
  for (int stage : setup.layout.stages_of(rank_)) {
    const StageEntry& entry = setup.map.stages[static_cast<std::size_t>(stage)];
    auto slice = std::make_shared<NetworkSlice>(*parts.network, entry.first, entry.end);
    Held& held = *held_.emplace_back(std::make_unique<Held>(stage, std::move(slice), parts));
    if (!replicas_) continue;
    if (setup.together) {
      held.statistics = replicas_->split(0, replicas_->rank());
      set_batch_norm_group(held.slice(), held.statistics.get());
    }
    if (!held.optimizer) continue;
    held.reducer = std::make_unique<Reducer>(held.slice().named_parameters(), *replicas_,
                                             ReducerOptions{.buckets = setup.buckets});
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

bool StageWorker::has_last_stage() const {
  return is_here(setup_.map.count() - 1);
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

StepResult StageWorker::step(const WindowWork& work) {
  const double start = StateClock::now();
  begin(work);
  for (std::size_t place = 0; place < work.line.size(); ++place) run(work, place);
  clock_.stop();
  instructions_ += std::ssize(work.line);
  end_step(start);
  return result_;
}

void StageWorker::end_step(double begin) {
  const StateSeconds& seconds = clock_.seconds();
  board_.end_step(total(seconds) - bubble(seconds) - at(seconds, WorkerState::all_reduce));
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds_[i] += seconds[i];
  ++steps_;
  std::vector<StateSpan> spans = clock_.take_spans();
  if (!spans.empty()) kept_.push_back({step_, begin, StateClock::now(), std::move(spans)});
}

void StageWorker::begin(const WindowWork& work) {
  // What loading and checks have held before is no part of training.
  if (!std::exchange(has_stepped_, true)) context(options_.device).memory().reset_peak();
  clock_.clear();
  clock_.enter(WorkerState::host);
  step_ = work.window.step;
  findings_ = {};
  batches_done_ = 0;
  steps_left_ = static_cast<int>(held_.size());
  settle_layouts(work);
  for (const auto& held : held_) {
    held->computation.clear();
    held->slice().train();
    if (!held->optimizer) continue;
    held->optimizer->zero_grad();
    held->optimizer->set_lr(work.window.lr);
  }
  // A worker whose stages see no images needs no batch.
  if (!is_here(0) && !has_last_stage()) {
    for (std::int64_t i = 0; i < std::ssize(work.window.shares); ++i) work.feed.done(i);
    batches_done_ = std::ssize(work.window.shares);
  }
}

// A forward moves weights into the layouts that they like: without one this replica's gradients
// would lie otherwise than those of the others.
void StageWorker::settle_layouts(const WindowWork& work) {
  if (work.plan.last(replica_) >= 0) return;
  for (const auto& held : held_) {
    if (held->has_layouts) continue;
    held->has_layouts = true;
    held->slice().eval();
    std::vector<Tensor> inputs;
    const auto& entry = setup_.map.stages[static_cast<std::size_t>(held->number)];
    for (const Shape& shape : shapes_for(entry.inputs, 1)) {
      inputs.push_back(Tensor::zeros(shape, {options_.dtype, options_.device}));
    }
    held->computation.infer(inputs);
  }
}

void StageWorker::run(const WindowWork& work, std::size_t place) {
  const Instruction& at = work.line[place];
  const int k = at.micro_batch;
  const bool runs = !of_window(at.op) && work.plan.runs(k, replica_);
  board_.begin_instruction(mark_of(at));
  switch (at.op) {
    case ScheduleOp::receive_activation:
      held(at.stage).activations[k] = links_.receive(at, work.plan.at(k), runs, clock_);
      break;
    case ScheduleOp::send_activation:
      links_.send(at, work.plan.at(k), take(held(at.stage).made_activations, k), clock_);
      break;
    case ScheduleOp::forward:
      forward(work, at);
      break;
    case ScheduleOp::receive_gradient:
      held(at.stage).gradients[k] = links_.receive(at, work.plan.at(k), runs, clock_);
      break;
    case ScheduleOp::send_gradient:
      links_.send(at, work.plan.at(k), take(held(at.stage).made_gradients, k), clock_);
      break;
    case ScheduleOp::backward_input: {
      const Instruction weights{ScheduleOp::backward_weight, at.stage, k};
      backward(work, at, place + 1 < work.line.size() && work.line[place + 1] == weights);
      break;
    }
    case ScheduleOp::backward_weight:
      backward_weights(work, at);
      break;
    case ScheduleOp::all_reduce:
      begin_reduction(work, at);
      break;
    case ScheduleOp::step:
      // The first update waits for all gradients of all stages: their norm is one.
      if (--steps_left_ == 0) finish(work);
      break;
  }
}

std::vector<Tensor> StageWorker::inputs_of(const WindowWork& work, const Instruction& at) {
  if (at.stage > 0) return take(held(at.stage).activations, at.micro_batch);
  const MicroBatch& micro_batch = work.plan.at(at.micro_batch);
  const HostBatch& batch = work.feed.at(micro_batch.batch);
  return {head_.input(batch, images_of(batch, micro_batch))};
}

void StageWorker::forward(const WindowWork& work, const Instruction& at) {
  Held& own = held(at.stage);
  const int k = at.micro_batch;
  const MicroBatch& micro_batch = work.plan.at(k);
  const bool is_last = at.stage + 1 == setup_.map.count();
  if (at.stage == 0 || is_last) {
    clock_.enter(WorkerState::loader, at);
    board_.enter(Activity::loading);
    work.feed.at(micro_batch.batch);
    board_.enter(Activity::computing);
    board_.begin_instruction(mark_of(at));
  }
  clock_.enter(WorkerState::forward, at);
  const double begin = StateClock::now();
  std::vector<Tensor> inputs, outputs;
  if (work.plan.runs(k, replica_)) {
    inputs = inputs_of(work, at);
    Stage::Finish finish;
    if (is_last) {
      const HostBatch& batch = work.feed.at(micro_batch.batch);
      const double scale = 1 / static_cast<double>(work.window.images);
      finish = [this, scale, target = head_.target(batch, labels_of(batch, micro_batch))](
                   const Tensor& output) { return head_.training_loss(output, target, scale); };
    }
    outputs = own.computation.forward(k, inputs, finish);
    synchronize();
    own.has_layouts = true;
    check_forward(own, k, outputs);
    if (work.plan.ends_batch(k, replica_)) commit_batch_norms(own.slice());
    own.samples.add(PhaseSamples::forward, work.plan.images(k, replica_),
                    StateClock::now() - begin);
  } else if (at.stage > 0) {
    take(own.activations, k);
  }
  clock_.enter(WorkerState::host, at);
  if (!is_last) {
    (is_here(at.stage + 1) ? held(at.stage + 1).activations : own.made_activations)[k] = outputs;
  }
  const bool last_with_images = is_last || (at.stage == 0 && !has_last_stage());
  if (last_with_images && work.plan.closes_batch(k)) finish_batches(work, micro_batch.batch);
}

void StageWorker::check_forward(Held& own, int k, const std::vector<Tensor>& outputs) {
  bool good = true;
  if (own.number + 1 == setup_.map.count()) {
    const double loss = outputs.front().item();
    findings_.sums.loss += loss;
    findings_.note_loss(k, loss);
    good = std::isfinite(loss);
  } else {
    good = all_finite(outputs);
  }
  if (!good) {
    findings_.note_bad_value(k, own.computation.first_non_finite(own.computation.inputs(k)));
  }
}

// Batches without micro-batches are loaded too: others of the process's workers count them.
void StageWorker::finish_batches(const WindowWork& work, std::int64_t through) {
  for (; batches_done_ <= through; ++batches_done_) {
    board_.enter(Activity::loading);
    work.feed.at(batches_done_);
    board_.enter(Activity::computing);
    work.feed.done(batches_done_);
  }
}

void StageWorker::backward(const WindowWork& work, const Instruction& at, bool whole) {
  Held& own = held(at.stage);
  const int k = at.micro_batch;
  const bool is_last = at.stage + 1 == setup_.map.count();
  const std::vector<Tensor> gradients = is_last ? std::vector<Tensor>() : take(own.gradients, k);
  std::vector<Tensor> of_inputs;
  if (work.plan.runs(k, replica_)) {
    const std::int64_t images = work.plan.images(k, replica_);
    double begin = StateClock::now();
    if (own.computation.recomputes()) {
      clock_.enter(WorkerState::recompute, at);
      own.computation.recompute(k);
      synchronize();
      const double end = StateClock::now();
      own.samples.add(PhaseSamples::recompute, images, end - std::exchange(begin, end));
    }
    clock_.enter(WorkerState::backward_input, at);
    if (whole) arm_if_last(work, at);
    own.computation.backward(k, gradients, whole);
    synchronize();
    own.samples.add(PhaseSamples::backward_input, images, StateClock::now() - begin);
    of_inputs = own.computation.take_input_gradients(k);
    clock_.enter(WorkerState::host, at);
  }
  if (at.stage == 0) return;
  (is_here(at.stage - 1) ? held(at.stage - 1).gradients : own.made_gradients)[k] = of_inputs;
}

void StageWorker::backward_weights(const WindowWork& work, const Instruction& at) {
  if (!work.plan.runs(at.micro_batch, replica_)) return;
  clock_.enter(WorkerState::backward_weight, at);
  const double begin = StateClock::now();
  arm_if_last(work, at);
  Held& own = held(at.stage);
  own.computation.backward_weights(at.micro_batch);
  synchronize();
  own.samples.add(PhaseSamples::backward_weight, work.plan.images(at.micro_batch, replica_),
                  StateClock::now() - begin);
  clock_.enter(WorkerState::host, at);
}

// From here on every gradient that becomes final is the window's: earlier micro-batches have added
// theirs.
void StageWorker::arm_if_last(const WindowWork& work, const Instruction& at) {
  Reducer* reducer = held(at.stage).reducer.get();
  if (!reducer || reducer->is_armed() || at.micro_batch != work.plan.last(replica_)) return;
  reducer->arm();
}

void StageWorker::begin_reduction(const WindowWork& work, const Instruction& at) {
  Reducer* reducer = held(at.stage).reducer.get();
  if (!reducer || work.plan.last(replica_) >= 0) return;
  reducer->arm();
  reducer->absent();  // zeros stand for gradients that it does not have
}

void StageWorker::finish(const WindowWork& work) {
  finish_batches(work, std::ssize(work.window.shares) - 1);
  std::vector<StageGradients> gradients;
  for (const auto& held : held_) {
    if (held->reducer) {
      clock_.enter(WorkerState::all_reduce, {ScheduleOp::all_reduce, held->number, 0});
      held->reducer->finish();
    }
    clock_.enter(WorkerState::optimizer, {ScheduleOp::step, held->number, 0});
    StageGradients& own = gradients.emplace_back();
    own.stage = held->number;
    own.parameters = held->slice().named_parameters();
    // In the first step gradients come row-major: a norm added up so would differ in its last bits
    // from that of a run which has come here without stopping.
    own.squares = squares_of_gradients(
        own.parameters, held->reducer ? held->reducer->layouts() : std::vector<LayoutId>());
  }
  // Replicas of one worker wait for each other here, others for the stages that are still at work.
  const bool alone = setup_.layout.workers_per_replica == 1;
  clock_.enter(alone ? WorkerState::all_reduce : WorkerState::starved,
               {ScheduleOp::step, held_.front()->number, 0});
  result_ = agreement_.step(step_, findings_, gradients);
  for (const auto& held : held_) {
    clock_.enter(WorkerState::optimizer, {ScheduleOp::step, held->number, 0});
    if (!held->optimizer || work.window.images == 0) continue;
    held->optimizer->step(clip_scale(options_.clip_grad, result_.grad_norm));
  }
  synchronize();
  clock_.enter(WorkerState::host);
}

void StageWorker::infer(const ForwardWork& work,
                        const std::function<void(int, const std::vector<Tensor>&, Tensor)>& see) {
  for (const auto& held : held_) held->slice().eval();
  StateClock clock;
  for (const Instruction& at : work.line) {
    board_.begin_instruction(mark_of(at));
    Held& own = held(at.stage);
    const int k = at.micro_batch;
    const MicroBatch& micro_batch = work.plan.at(k);
    const bool runs = work.plan.runs(k, replica_);
    if (at.op == ScheduleOp::receive_activation) {
      own.activations[k] = links_.receive(at, micro_batch, runs, clock);
    } else if (at.op == ScheduleOp::send_activation) {
      links_.send(at, micro_batch, take(own.made_activations, k), clock);
    } else {
      std::vector<Tensor> inputs, outputs;
      if (at.stage > 0) inputs = take(own.activations, k);
      if (runs) {
        if (at.stage == 0) inputs = {head_.input(work.batch, images_of(work.batch, micro_batch))};
        outputs = own.computation.infer(inputs);
        synchronize();
        own.has_layouts = true;
      }
      if (at.stage + 1 == setup_.map.count()) {
        if (runs) see(k, inputs, outputs.front());
        continue;
      }
      if (!all_finite(outputs)) {
        findings_.note_bad_value(k, own.computation.first_non_finite(inputs));
      }
      (is_here(at.stage + 1) ? held(at.stage + 1).activations : own.made_activations)[k] = outputs;
    }
  }
}

EvalSums StageWorker::evaluate(const ForwardWork& work) {
  findings_ = {};
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
