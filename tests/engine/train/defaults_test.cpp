#include "engine/train/defaults.h"

#include "kernels/base/error.h"
#include "tests/support/catch.h"

using namespace convoy;

namespace {

Settings optimizer(const std::string& name) {
  Settings settings;
  settings.optimizer = name;
  return resolved_settings(settings, false);
}

}  // namespace

TEST_CASE("what is left open follows from the rest") {
  CHECK(optimizer("sgd").lr == 0.1);
  CHECK(optimizer("lars").lr == 1.0);
  CHECK(optimizer("adamw").lr == 0.001);
  CHECK(optimizer("sgd").weight_decay == 1e-4);
  CHECK(optimizer("lars").weight_decay == 1e-4);
  CHECK(optimizer("adamw").weight_decay == 0.01);
  CHECK(optimizer("sgd").loss == "cross-entropy");
  CHECK(resolved_settings(Settings(), true).loss == "mse");
  CHECK(optimizer("sgd").epochs == 1);
  CHECK(optimizer("sgd").eval_every == 1);
}

TEST_CASE("steps alone end a run without epochs and evaluations") {
  Settings settings;
  settings.steps = 5;
  CHECK(!resolved_settings(settings, false).epochs);
  CHECK(!resolved_settings(settings, false).eval_every);
}

TEST_CASE("what was given stays") {
  Settings settings;
  settings.lr = 0.5;
  settings.weight_decay = 0;
  settings.loss = "mse";
  settings.epochs = 7;
  settings.eval_every = 3;
  Settings same = resolved_settings(settings, false);
  CHECK(same.lr == 0.5);
  CHECK(same.weight_decay == 0.0);
  CHECK(same.loss == "mse");
  CHECK(same.epochs == 7);
  CHECK(same.eval_every == 3);
}

TEST_CASE("losses that do not fit are refused") {
  Settings settings;
  settings.model = "toy";
  settings.loss = "cross-entropy";
  CHECK_THROWS_AS(resolved_settings(settings, true), Error);
  settings.loss = "hinge";
  CHECK_THROWS_AS(resolved_settings(settings, false), Error);
  settings.loss = "mse";
  settings.label_smoothing = 0.1;
  CHECK_THROWS_AS(resolved_settings(settings, false), Error);
}
