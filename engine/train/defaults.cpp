#include "engine/train/defaults.h"

#include "kernels/base/error.h"

namespace convoy {
namespace {

void resolve_loss(Settings& settings, bool takes_rows) {
  if (!settings.loss) settings.loss = takes_rows ? "mse" : "cross-entropy";
  CONVOY_CHECK(settings.loss == "mse" || settings.loss == "cross-entropy",
               "--loss {} is none of cross-entropy, mse", *settings.loss);
  CONVOY_CHECK(!takes_rows || settings.loss == "mse",
               "--loss {}: {} takes rows of numbers, which have no classes; expected mse",
               *settings.loss, settings.model);
  CONVOY_CHECK(settings.label_smoothing == 0 || settings.loss == "cross-entropy",
               "--label-smoothing goes with --loss cross-entropy, not with {}", *settings.loss);
}

void resolve_optimizer(Settings& settings) {
  const bool adamw = settings.optimizer == "adamw";
  const bool lars = settings.optimizer == "lars";
  if (!settings.lr) settings.lr = adamw ? 0.001 : lars ? 1.0 : 0.1;
  if (!settings.weight_decay) settings.weight_decay = adamw ? 0.01 : 1e-4;
}

}  // namespace

Settings resolved_settings(Settings settings, bool takes_rows) {
  resolve_loss(settings, takes_rows);
  resolve_optimizer(settings);
  if (settings.steps) return settings;  // they alone may end the run, without evaluations
  settings.epochs = settings.epochs.value_or(1);
  settings.eval_every = settings.eval_every.value_or(1);
  return settings;
}

}  // namespace convoy
