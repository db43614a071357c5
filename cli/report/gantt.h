// One step as boxes over time: a row for each worker with its forwards and backwards by
// micro-batch, thin rows for sending, receiving and collectives where there are any, and the
// forecast below.
//
//     worker 0   F0 F1 F2 F3 ........ I0 I1 I2 I3 ST      measured
//     stage 0    F0 F1 F2 F3 ....... I0 I1 I2 I3 ST       predicted
#pragma once

#include <cstddef>
#include <string>

#include "cli/report/run_record.h"
#include "cli/report/svg.h"

namespace convoy::cli {

/// A drawing, and how many workers found room in it.
struct Gantt {
  Svg svg;
  std::size_t workers = 0;
};

/// Whole workers are drawn as long as their boxes together stay below `most_boxes`, at least one.
/// Neighbours too thin to be seen are one box. `id` is unique on the page.
Gantt draw_gantt(const SpanRecord& spans, const std::string& id, std::size_t most_boxes);

/// The figure with its table: how often and how long each worker did what.
std::string gantt_markup(const RunRecord& run, const std::string& id, std::size_t most_boxes);

/// Micro-batches of the step: those of worker 0's forwards.
int micro_batches_of(const SpanRecord& spans);

}  // namespace convoy::cli
