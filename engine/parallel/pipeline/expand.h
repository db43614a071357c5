// From a table of F, I and W alone to what a runner can follow: transfers between the workers of
// neighbouring stages, and AR and ST at the end of the window.
//
//     RA F SA ... RG I SG W ... AR ST        the first stage has no RA and SG, the last no SA and
//     RG
//
// SG comes before W, so that the worker before waits for I only; the price is that one
// micro-batch's output gradients stay until its W.
#pragma once

#include "engine/parallel/pipeline/instruction.h"

namespace convoy {

struct ExpandOptions {
  bool gradient_after_weight = false;  ///< SG after W: backward as one piece
};

/// Adds transfers (none between stages of one worker), AR after a stage's last W, since it runs
/// beside what follows, and all ST at the end of the line.
Schedule expand(const Schedule& compute, const ExpandOptions& options = {});

/// The tables of consecutive windows as one: micro-batches of later ones count on.
Schedule join_windows(const std::vector<Schedule>& windows);

}  // namespace convoy
