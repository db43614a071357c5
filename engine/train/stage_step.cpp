// A worker's training step: its line of the schedule, instruction by instruction, and the update
// that all workers agree on.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/nn/layers.h"
#include "engine/parallel/pipeline/instruction_mark.h"
#include "engine/train/held_stage.h"
#include "kernels/base/context.h"

namespace convoy {

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
  if (!setup_.layout.holds_first_stage(rank_) && !setup_.layout.holds_last_stage(rank_)) {
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
      held(at.stage).activations.put(k, links_.receive(at, work.plan.at(k), runs, clock_));
      break;
    case ScheduleOp::send_activation:
      links_.send(at, work.plan.at(k), held(at.stage).made_activations.take(k), clock_);
      break;
    case ScheduleOp::forward:
      forward(work, at);
      break;
    case ScheduleOp::receive_gradient:
      held(at.stage).gradients.put(k, links_.receive(at, work.plan.at(k), runs, clock_));
      break;
    case ScheduleOp::send_gradient:
      links_.send(at, work.plan.at(k), held(at.stage).made_gradients.take(k), clock_);
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
  if (at.stage > 0) return held(at.stage).activations.take(at.micro_batch);
  const MicroBatch& micro_batch = work.plan.at(at.micro_batch);
  const HostBatch& batch = work.feed.at(micro_batch.batch);
  return {head_.input(batch, images_of(batch, micro_batch))};
}

void StageWorker::forward(const WindowWork& work, const Instruction& at) {
  Held& own = held(at.stage);
  const int k = at.micro_batch;
  const bool is_last = is_last_stage(at.stage);
  if (at.stage == 0 || is_last) wait_for_batch(work, at);
  clock_.enter(WorkerState::forward, at);
  std::vector<Tensor> outputs;
  if (work.plan.runs(k, replica_)) {
    outputs = compute_forward(work, at);
  } else if (at.stage > 0) {
    own.activations.take(k);
  }
  clock_.enter(WorkerState::host, at);
  if (!is_last) pass_on(own, k, std::move(outputs));
  const bool last_with_images =
      is_last || (at.stage == 0 && !setup_.layout.holds_last_stage(rank_));
  if (last_with_images && work.plan.closes_batch(k)) finish_batches(work, work.plan.at(k).batch);
}

void StageWorker::wait_for_batch(const WindowWork& work, const Instruction& at) {
  clock_.enter(WorkerState::loader, at);
  board_.enter(Activity::loading);
  work.feed.at(work.plan.at(at.micro_batch).batch);
  board_.enter(Activity::computing);
  board_.begin_instruction(mark_of(at));
}

std::vector<Tensor> StageWorker::compute_forward(const WindowWork& work, const Instruction& at) {
  Held& own = held(at.stage);
  const int k = at.micro_batch;
  const double begin = StateClock::now();
  const std::vector<Tensor> inputs = inputs_of(work, at);
  const Stage::Finish finish = is_last_stage(at.stage) ? loss_of(work, k) : nullptr;
  std::vector<Tensor> outputs = own.computation.forward(k, inputs, finish);
  synchronize();
  own.has_layouts = true;
  check_forward(own, k, outputs);
  if (work.plan.ends_batch(k, replica_)) commit_batch_norms(own.slice());
  own.samples.add(PhaseSamples::forward, work.plan.images(k, replica_), StateClock::now() - begin);
  return outputs;
}

// It keeps the targets: the batch may be gone when forward runs again.
Stage::Finish StageWorker::loss_of(const WindowWork& work, int k) const {
  const MicroBatch& micro_batch = work.plan.at(k);
  const HostBatch& batch = work.feed.at(micro_batch.batch);
  const double scale = 1 / static_cast<double>(work.window.images);
  return [this, scale, target = head_.target(batch, labels_of(batch, micro_batch))](
             const Tensor& output) { return head_.training_loss(output, target, scale); };
}

void StageWorker::check_forward(Held& own, int k, const std::vector<Tensor>& outputs) {
  bool good = true;
  if (is_last_stage(own.number)) {
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
  std::vector<Tensor> gradients;
  if (!is_last_stage(at.stage)) gradients = own.gradients.take(k);
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
  (is_here(at.stage - 1) ? held(at.stage - 1).gradients : own.made_gradients)
      .put(k, std::move(of_inputs));
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

}  // namespace convoy
