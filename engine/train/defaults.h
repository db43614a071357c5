// What settings left open come to mean: the one place that knows the engine's default values.
#pragma once

#include "engine/train/settings.h"

namespace convoy {

/// `settings` with loss, learning rate, weight decay, epochs and evaluation filled where they were
/// open. A network that `takes_rows` regresses. `usage` where what was given contradicts itself.
/// Filled settings stay as they are.
Settings resolved_settings(Settings settings, bool takes_rows);

}  // namespace convoy
