#include "engine/parallel/pipeline/spans.h"

#include "engine/parallel/pipeline/schedules.h"
#include "tests/support/catch.h"

using namespace convoy;

namespace {

Span span(SpanTrack track, WorkerState state, Instruction instruction, double begin, double end) {
  return {track, state, instruction, begin, end};
}

Timeline two_stages() {
  StageCost cost;
  cost.times[1] = {.forward = 1, .backward_input = 1, .backward_weight = 1};
  SimulationTask task;
  task.costs = {cost, cost};
  task.images = {1, 1};
  return simulate(make_schedule({.name = "fill-drain", .workers = 2, .micro_batches = {0, 1}}),
                  task);
}

}  // namespace

TEST_CASE("a worker's states become boxes on the track of what they are about") {
  const Instruction receive{ScheduleOp::receive_activation, 1, 2};
  const std::vector<Span> spans =
      spans_of({{WorkerState::starved, receive, 10, 11},
                {WorkerState::forward, {ScheduleOp::forward, 1, 2}, 11, 13},
                {WorkerState::host, {}, 13, 14},
                {WorkerState::slot_full, {ScheduleOp::send_activation, 1, 2}, 14, 15},
                {WorkerState::all_reduce, {ScheduleOp::step, 1, 0}, 15, 16}},
               -10);
  REQUIRE(spans.size() == 4);  // the host's own work is no box
  CHECK(spans[0].track == SpanTrack::receive);
  CHECK(spans[1].track == SpanTrack::compute);
  CHECK(spans[2].track == SpanTrack::send);
  CHECK(spans[3].track == SpanTrack::collectives);
  CHECK(spans[1].begin == 1);
  CHECK(spans[1].end == 3);
  CHECK(describe(spans[0]) == "starved RA 1.2");
  CHECK(describe(spans[1]) == "F 1.2");
  CHECK(describe(spans[3]) == "all_reduce ST 1");
}

TEST_CASE("a forecast row has a box for each forward and backward, in seconds of the step") {
  const std::vector<Span> row = spans_of(two_stages(), 1);
  int computing = 0;
  for (const Span& box : row) computing += box.track == SpanTrack::compute;
  CHECK(computing == 6);  // F, I and W of two micro-batches
  REQUIRE(row.front().state == WorkerState::starved);
  CHECK(row.front().begin == 0);
  CHECK(row.front().end == 1);  // worker 0's first forward
}

TEST_CASE("accounts and spans come back from their text with all bits") {
  WorkerAccount account;
  account.worker = 3;
  account.replica = 1;
  account.stages = {1, 3};
  account.steps = 7;
  account.measured[0] = 0.1;
  account.measured[10] = 1.0 / 3;
  account.predicted[2] = 1e-300;
  account.peak_bytes = 16777217;
  const std::vector<WorkerAccount> back = read_accounts(write_accounts({account, {}}));
  REQUIRE(back.size() == 2);
  CHECK(back[0].stages == account.stages);
  CHECK(back[0].measured == account.measured);
  CHECK(back[0].predicted == account.predicted);
  CHECK(back[0].peak_bytes == account.peak_bytes);
  CHECK(back[0].steps == 7);
  CHECK(back[1].stages.empty());

  WorkerSpans worker{2, 1, {}, spans_of(two_stages(), 0)};
  worker.measured = {
      span(SpanTrack::send, WorkerState::transfer, {ScheduleOp::send_gradient, 1, 4}, 0.1, 0.2)};
  const std::vector<WorkerSpans> spans = read_spans(write_spans({worker}));
  REQUIRE(spans.size() == 1);
  CHECK(spans[0].worker == 2);
  CHECK(spans[0].replica == 1);
  CHECK(spans[0].predicted.size() == worker.predicted.size());
  REQUIRE(spans[0].measured.size() == 1);
  CHECK(spans[0].measured[0].begin == 0.1);
  CHECK(describe(spans[0].measured[0]) == "transfer SG 1.4");
}

TEST_CASE("a text that was cut off is refused") {
  CHECK_THROWS(read_accounts("0 0 1 "));
  CHECK_THROWS(read_spans("0 x "));
}
