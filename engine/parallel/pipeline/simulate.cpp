#include "engine/parallel/pipeline/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>

#include "engine/parallel/pipeline/verify_schedule.h"
#include "kernels/base/error.h"

namespace convoy {
namespace {

// A message on a channel: when its send began, when it had left its sender and arrived.
struct Message {
  double sent, arrived, bytes;
};

// One stage edge and direction, named by its receiver.
struct SimulatedChannel {
  std::vector<Message> messages;
  std::vector<double> taken;  // when each message was received
};

struct SimulatedWorker {
  double now = 0;
  double reducing_until = 0;  // the worker's all-reduces run one after the other
  std::deque<std::pair<double, double>> leaving;  // sends: when they are gone, their bytes
};

class Simulation {
 public:
  Simulation(const Schedule& schedule, const SimulationTask& task)
      : schedule_(schedule),
        task_(task),
        memory_task_{task.costs, task.images, task.slots},
        owners_(stage_owners(schedule)),
        workers_(schedule.lines.size()) {
    timeline_.spans.resize(schedule.lines.size());
    timeline_.workers.resize(schedule.lines.size());
    for (const ScheduleLine& line : schedule.lines) meters_.emplace_back(line, memory_task_);
  }

  Timeline run() {
    CONVOY_CHECK(task_.slots >= 1, "simulation: channels of {} messages, expected at least 1",
                 task_.slots);
    ScheduleWalk walk(schedule_, {task_.slots});
    const bool ended = walk.run([this](int worker, const Instruction& i) { visit(worker, i); });
    if (!ended) check_no_deadlock(schedule_, {task_.slots});  // fails with names
    finish();
    return std::move(timeline_);
  }

 private:
  void visit(int worker, const Instruction& instruction) {
    double begin = now(worker);
    spend(worker, task_.host_s, times(worker).host);
    if (sends(instruction.op)) {
      send(worker, instruction);
    } else if (receives(instruction.op)) {
      receive(worker, instruction);
    } else if (of_window(instruction.op)) {
      end_window(worker, instruction);
    } else {
      compute(worker, instruction);
    }
    if (instruction.op == ScheduleOp::step) begin = now(worker) - step_s(instruction);
    timeline_.spans[worker].push_back({instruction, begin, now(worker)});
  }

  double step_s(const Instruction& step) const { return task_.costs[step.stage].step_s; }

  void compute(int worker, const Instruction& instruction) {
    count_memory(worker, instruction);
    const auto [op, stage, k] = instruction;
    const PhaseTimes phase = times_at(task_.costs[stage], task_.images[k]);
    PhaseTimes& sum = times(worker).compute;
    if (op == ScheduleOp::forward) spend(worker, phase.forward, sum.forward);
    if (op == ScheduleOp::backward_input) spend(worker, phase.backward_input, sum.backward_input);
    if (op == ScheduleOp::backward_weight) {
      spend(worker, phase.backward_weight, sum.backward_weight);
    }
  }

  // Waits for a slot; the message leaves when the link is free, and the worker goes on.
  void send(int worker, const Instruction& instruction) {
    const Instruction taker = counterpart(instruction);
    SimulatedChannel& channel = channels_[{taker.op, taker.stage}];
    const double begin = now(worker);
    const int before = static_cast<int>(channel.messages.size()) - task_.slots;
    if (before >= 0) wait_until(worker, channel.taken[before], times(worker).slot_full);
    count_memory(worker, instruction);
    const double bytes = message_bytes(instruction, memory_task_);
    spend(worker, bytes * task_.link.host_s_per_byte, times(worker).host);
    double& link_free = links_[{worker, owners_[taker.stage]}];
    link_free = std::max(link_free, now(worker)) + task_.link.seconds(bytes);
    channel.messages.push_back({begin, link_free, bytes});
    workers_[worker].leaving.emplace_back(link_free, bytes);
  }

  void receive(int worker, const Instruction& instruction) {
    SimulatedChannel& channel = channels_[{instruction.op, instruction.stage}];
    const Message& message = channel.messages[channel.taken.size()];
    wait_until(worker, message.sent, times(worker).starved);
    wait_until(worker, message.arrived, times(worker).transfer);
    spend(worker, message.bytes * task_.link.host_s_per_byte, times(worker).host);
    channel.taken.push_back(now(worker));
  }

  void end_window(int worker, const Instruction& instruction) {
    const StageCost& cost = task_.costs[instruction.stage];
    double& reducing_until = workers_[worker].reducing_until;
    if (instruction.op == ScheduleOp::all_reduce) {
      reducing_until = std::max(reducing_until, now(worker)) + cost.all_reduce_s;
      reduced_[instruction.stage] = reducing_until;
      return;
    }
    wait_until(worker, reduced_[instruction.stage], times(worker).all_reduce);
    spend(worker, step_s(instruction), times(worker).step);
  }

  double& now(int worker) { return workers_[worker].now; }
  WorkerTimes& times(int worker) { return timeline_.workers[worker]; }

  void spend(int worker, double seconds, double& account) {
    now(worker) += seconds;
    account += seconds;
  }

  void wait_until(int worker, double time, double& account) {
    if (time <= now(worker)) return;
    account += time - now(worker);
    now(worker) = time;
  }

  void count_memory(int worker, const Instruction& instruction) {
    auto& leaving = workers_[worker].leaving;
    while (!leaving.empty() && leaving.front().first <= now(worker)) {
      meters_[worker].release(leaving.front().second);
      leaving.pop_front();
    }
    meters_[worker].run(instruction);
  }

  void finish() {
    for (const SimulatedWorker& worker : workers_) {
      timeline_.makespan = std::max(timeline_.makespan, worker.now);
    }
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      times(static_cast<int>(worker)).drained = timeline_.makespan - workers_[worker].now;
      timeline_.memory.push_back(meters_[worker].peak());
    }
  }

  const Schedule& schedule_;
  const SimulationTask& task_;
  MemoryTask memory_task_;
  std::vector<int> owners_;
  std::vector<SimulatedWorker> workers_;
  std::vector<MemoryMeter> meters_;
  std::map<std::pair<ScheduleOp, int>, SimulatedChannel> channels_;
  std::map<std::pair<int, int>, double> links_;  // sender and receiver: busy until
  std::map<int, double> reduced_;                // by stage: when its gradients are summed
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Schedule& schedule, const SimulationTask& task) {
  return Simulation(schedule, task).run();
}

}  // namespace convoy
