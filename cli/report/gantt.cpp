#include "cli/report/gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/report/axis.h"
#include "cli/report/html.h"

namespace convoy::cli {
namespace {

constexpr double kWidth = 1100;
constexpr double kLeft = 190;
constexpr double kRight = kWidth - 12;
constexpr double kTop = 30;
constexpr double kComputeHeight = 24;
constexpr double kThinHeight = 11;
constexpr double kPlanHeight = 17;
constexpr double kGap = 16;
constexpr double kThinnest = 1;  // boxes below it are put together

/// Neighbouring spans of one state that make one box.
struct Box {
  Span span;
  std::size_t count = 1;
};

/// A row of a worker.
struct Row {
  const char* name;
  double height;
  const char* style;
  std::vector<Box> boxes;
};

struct Lane {
  std::string name;
  std::string stages;
  int worker = 0;
  std::vector<Row> rows;

  std::size_t boxes() const {
    std::size_t sum = 0;
    for (const Row& row : rows) sum += row.boxes.size();
    return sum;
  }
};

std::vector<Box> boxes_of(const std::vector<Span>& spans, SpanTrack track, double second) {
  std::vector<Box> boxes;
  for (const Span& span : spans) {
    if (span.track == track) boxes.push_back({span});
  }
  std::stable_sort(boxes.begin(), boxes.end(),
                   [](const Box& a, const Box& b) { return a.span.begin < b.span.begin; });
  std::vector<Box> merged;
  const double thinnest = kThinnest / second;
  for (const Box& box : boxes) {
    Box* last = merged.empty() ? nullptr : &merged.back();
    const bool thin = box.span.end - box.span.begin < thinnest;
    if (last && thin && last->span.state == box.span.state &&
        box.span.begin - last->span.end < thinnest &&
        last->span.end - last->span.begin < thinnest) {
      last->span.end = std::max(last->span.end, box.span.end);
      ++last->count;
    } else {
      merged.push_back(box);
    }
  }
  return merged;
}

double length_of(const SpanRecord& spans) {
  double length = spans.step.end;
  for (const WorkerSpans& worker : spans.step.workers) {
    for (const auto* row : {&worker.measured, &worker.predicted}) {
      for (const Span& span : *row) length = std::max(length, span.end);
    }
  }
  return length > 0 ? length : 1;
}

std::string stages_text(const WorkerSpans& worker) {
  std::set<int> stages;
  for (const auto* row : {&worker.measured, &worker.predicted}) {
    for (const Span& span : *row) {
      if (span.state == WorkerState::forward) stages.insert(span.instruction.stage);
    }
  }
  if (stages.empty()) return "";
  return fmt::format("stage{} {}", stages.size() > 1 ? "s" : "", fmt::join(stages, ", "));
}

Lane lane_of(const WorkerSpans& worker, bool replicas, double second) {
  Lane lane;
  lane.worker = worker.worker;
  lane.name = fmt::format("worker {}", worker.worker);
  lane.stages = stages_text(worker);
  if (replicas) lane.stages = fmt::format("replica {}, ", worker.replica) + lane.stages;
  lane.rows.push_back(
      {"compute", kComputeHeight, "box", boxes_of(worker.measured, SpanTrack::compute, second)});
  for (const SpanTrack track : {SpanTrack::send, SpanTrack::receive, SpanTrack::collectives}) {
    lane.rows.push_back({kTrackNames[static_cast<int>(track)], kThinHeight, "wait",
                         boxes_of(worker.measured, track, second)});
  }
  lane.rows.push_back(
      {"predicted", kPlanHeight, "plan", boxes_of(worker.predicted, SpanTrack::compute, second)});
  return lane;
}

/// Rows that are empty on all workers are left out.
void drop_empty_rows(std::vector<Lane>& lanes) {
  for (std::size_t row = lanes.front().rows.size(); row-- > 1;) {
    const bool empty = std::all_of(lanes.begin(), lanes.end(), [row](const Lane& lane) {
      return lane.rows[row].boxes.empty();
    });
    if (!empty) continue;
    for (Lane& lane : lanes) lane.rows.erase(lane.rows.begin() + static_cast<std::ptrdiff_t>(row));
  }
}

std::vector<Lane> lanes_of(const SpanRecord& spans, std::size_t most_boxes, double second) {
  std::set<int> replicas;
  for (const WorkerSpans& worker : spans.step.workers) replicas.insert(worker.replica);
  std::vector<Lane> lanes;
  std::size_t boxes = 0;
  for (const WorkerSpans& worker : spans.step.workers) {
    Lane lane = lane_of(worker, replicas.size() > 1, second);
    boxes += lane.boxes();
    if (boxes > most_boxes && !lanes.empty()) break;
    lanes.push_back(std::move(lane));
  }
  drop_empty_rows(lanes);
  return lanes;
}

std::string tip_of(const Box& box) {
  const double begin = box.span.begin * 1e3;
  const double end = box.span.end * 1e3;
  const std::string what = box.count > 1
                               ? fmt::format("{} boxes from {}", box.count, describe(box.span))
                               : describe(box.span);
  return fmt::format("{}: {:.3f} to {:.3f} ms ({:.3f} ms)", what, begin, end, end - begin);
}

bool is_dark(WorkerState state) {
  return state == WorkerState::backward_input || state == WorkerState::recompute ||
         state == WorkerState::slot_full || state == WorkerState::starved;
}

std::string label_of(const Box& box, double width, bool several_stages) {
  if (box.count > 1) return "";
  const Instruction& instruction = box.span.instruction;
  const std::string kind = kind_of(box.span);
  if (kind.size() > 2) return "";
  if (of_window(instruction.op)) return width > 20 ? kind : "";
  const std::string number = std::to_string(instruction.micro_batch);
  const double digit = 7;
  const auto fits = [&](const std::string& text) {
    return width >= digit * static_cast<double>(text.size()) + 3;
  };
  std::string full =
      several_stages ? fmt::format("{}{}.{}", kind, instruction.stage, number) : kind + number;
  if (fits(full)) return full;
  return fits(number) ? number : "";
}

class Drawer {
 public:
  Drawer(Svg& svg, const Scale& x) : svg_(svg), x_(x) {}

  /// Draws a worker; the place below it.
  double lane(const Lane& lane, double y) {
    svg_.text({4, y + 13}, lane.name, "name");
    svg_.text({4, y + 28}, lane.stages, "soft small");
    several_stages_ = lane.stages.find("stages") != std::string::npos;
    for (const Row& row : lane.rows) y = this->row(row, lane.worker, y);
    return y + kGap;
  }

 private:
  double row(const Row& row, int worker, double y) {
    svg_.text({x_.begin - 6, y + row.height - (row.height > 12 ? 5 : 2)}, row.name,
              "soft end small");
    svg_.rect({x_.begin, y, x_.end - x_.begin, row.height - 1}, "lane");
    for (const Box& box : row.boxes) draw(box, row, worker, y);
    return y + row.height;
  }

  void draw(const Box& box, const Row& row, int worker, double y) {
    const Span& span = box.span;
    const double begin = x_.at(span.begin);
    const double width = std::max(x_.at(span.end) - begin, 0.5);
    const std::string style = fmt::format(
        "{} {}{}", row.style, kStateNames[static_cast<int>(span.state)], width < 3 ? " thin" : "");
    const std::string data =
        attribute("data-worker", std::to_string(worker)) +
        attribute("data-micro-batch", std::to_string(span.instruction.micro_batch)) +
        attribute("data-kind", kind_of(span));
    svg_.rect({begin, y, width, row.height - 1}, style, tip_of(box), data);
    const std::string label = row.height > 12 ? label_of(box, width, several_stages_) : "";
    if (label.empty()) return;
    svg_.text({begin + width / 2, y + row.height / 2 + 3.5}, label,
              is_dark(span.state) ? "inbox dark" : "inbox");
  }

  Svg& svg_;
  const Scale& x_;
  bool several_stages_ = false;
};

// Time runs to the right, in ms or s.
void draw_time(Svg& svg, const Scale& x, double bottom) {
  const bool seconds = x.high >= 10;
  const double unit = seconds ? 1 : 1e-3;
  for (const double tick : round_ticks(0, x.high / unit, 10)) {
    const double at = x.at(tick * unit);
    svg.line({at, kTop - 6}, {at, bottom}, "grid");
    svg.text({at, kTop - 12}, short_number(tick), "soft middle small");
  }
  svg.text({4, kTop - 12}, seconds ? "seconds" : "milliseconds", "soft small");
}

double height_of(const Lane& lane) {
  double height = kGap;
  for (const Row& row : lane.rows) height += row.height;
  return height;
}

struct Sum {
  std::size_t count = 0;
  double seconds = 0;
};

/// By kind of box: "F", "I", "W", "ST", "starved", ...
std::map<std::string, Sum> sums_of(const std::vector<Span>& spans) {
  std::map<std::string, Sum> sums;
  for (const Span& span : spans) {
    Sum& sum = sums[kind_of(span)];
    ++sum.count;
    sum.seconds += span.end - span.begin;
  }
  return sums;
}

std::string milliseconds(double seconds) {
  return short_number(seconds * 1e3);
}

void add_rows(const WorkerSpans& worker, Table& table) {
  std::map<std::string, Sum> planned = sums_of(worker.predicted);
  for (const auto& [kind, sum] : sums_of(worker.measured)) {
    const Sum plan = planned[kind];
    const auto count = static_cast<double>(sum.count);
    table.rows.push_back({std::to_string(worker.worker), kind, std::to_string(sum.count),
                          milliseconds(sum.seconds / count), milliseconds(sum.seconds),
                          plan.count ? milliseconds(plan.seconds) : "–"});
  }
}

std::string legend_markup(const SpanRecord& spans) {
  std::set<WorkerState> states;
  for (const WorkerSpans& worker : spans.step.workers) {
    for (const Span& span : worker.measured) states.insert(span.state);
  }
  std::string items;
  for (const WorkerState state : states) {
    const std::string name = kStateNames[static_cast<int>(state)];
    items += fmt::format("<li><span class=\"key k-{0}\"></span>{0}</li>", name);
  }
  return "<ul class=\"legend\">" + items + "</ul>\n";
}

std::string caption_of(const SpanRecord& spans, std::size_t drawn) {
  std::string text = fmt::format(
      "Step {}: {} micro-batches on {} worker(s). Strong boxes are measured, pale ones predicted "
      "by the simulator; a number in a box is its micro-batch.",
      spans.step.step, micro_batches_of(spans), spans.all_workers);
  if (static_cast<std::int64_t>(drawn) < spans.all_workers) {
    text += fmt::format(" The first {} of {} workers are shown.", drawn, spans.all_workers);
  }
  return text;
}

}  // namespace

int micro_batches_of(const SpanRecord& spans) {
  std::set<int> ids;
  for (const Span& span : spans.step.workers.front().measured) {
    if (span.state == WorkerState::forward) ids.insert(span.instruction.micro_batch);
  }
  return static_cast<int>(ids.size());
}

Gantt draw_gantt(const SpanRecord& spans, const std::string& id, std::size_t most_boxes) {
  const double length = length_of(spans);
  const Scale x{0, length, kLeft, kRight};
  const std::vector<Lane> lanes = lanes_of(spans, most_boxes, (kRight - kLeft) / length);
  double bottom = kTop;
  for (const Lane& lane : lanes) bottom += height_of(lane);
  Svg svg(id, kWidth, bottom, fmt::format("What each worker did in step {}", spans.step.step),
          "A row for each worker, a box for each forward and backward of a micro-batch; the "
          "predicted row stands below the measured one");
  draw_time(svg, x, bottom - kGap);
  Drawer drawer(svg, x);
  double y = kTop;
  for (const Lane& lane : lanes) y = drawer.lane(lane, y);
  return {std::move(svg), lanes.size()};
}

std::string gantt_markup(const RunRecord& run, const std::string& id, std::size_t most_boxes) {
  const Gantt gantt = draw_gantt(*run.spans, id, most_boxes);
  Table table{.caption = "Boxes of the step, by worker and kind",
              .head = {"worker", "kind", "boxes", "mean ms", "sum ms", "predicted sum ms"},
              .rows = {}};
  for (std::size_t i = 0; i < gantt.workers; ++i) add_rows(run.spans->step.workers[i], table);
  return figure_markup({.svg_markup = gantt.svg.markup(),
                        .caption = caption_of(*run.spans, gantt.workers),
                        .numbers = table,
                        .width = FigureWidth::wide,
                        .legend_markup = legend_markup(*run.spans)});
}

}  // namespace convoy::cli
