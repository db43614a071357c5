// A simulated schedule as text: time runs to the right, a row per stage. Digits are F, small
// letters I, capitals W, bars ST, dots idle time; blank: busy with another stage of the worker.
//
//     W0  0123...aA4bB5cC.dD.eE.fF         1f1b, 4 stages, 6 micro-batches
//     W1  .012..aA3bB4cC5dD.eE.fF.
#pragma once

#include <string>
#include <vector>

#include "engine/parallel/pipeline/simulate.h"

namespace convoy {

struct DrawOptions {
  double unit_s = 1;           ///< seconds of a column
  bool small_weights = false;  ///< W as small letters too: backward as one piece
};

/// The rows of one worker without their label, a row per stage in ascending order.
std::vector<std::string> draw_worker(const Timeline& timeline, int worker,
                                     const DrawOptions& options = {});

/// All rows, labelled `W0  `; further rows of a worker have a blank label.
std::string draw(const Timeline& timeline, const DrawOptions& options = {});

}  // namespace convoy
