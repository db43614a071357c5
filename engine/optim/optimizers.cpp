// SGD, LARS and AdamW: options to kernel arguments.
#include "engine/ops/support.h"
#include "engine/optim/optimizer.h"
#include "kernels/base/error.h"

namespace convoy {

Sgd::Sgd(NamedTensors parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), options.lr,
                options.momentum != 0 ? std::vector<std::string>{"momentum_buffer"}
                                      : std::vector<std::string>{}),
      options_(options) {
  CONVOY_CHECK(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
               "sgd: nesterov needs a momentum above 0 and no dampening; momentum is {}, dampening "
               "{}",
               options.momentum, options.dampening);
}

void Sgd::configure(const Tensor&, OptimizerSlot& slot) const {
  slot.weight_decay = options_.weight_decay;
}

void Sgd::update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) {
  context(stream.device())
      .kernels()
      .sgd_update(stream, slots,
                  {lr(), options_.momentum, options_.dampening, options_.nesterov, scale});
}

Lars::Lars(NamedTensors parameters, const LarsOptions& options)
    : Optimizer(std::move(parameters), options.lr, {"momentum_buffer"}), options_(options) {}

void Lars::configure(const Tensor& parameter, OptimizerSlot& slot) const {
  slot.adapt = parameter.shape().rank() > 1;
  slot.weight_decay = slot.adapt ? options_.weight_decay : 0;
}

void Lars::update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) {
  LarsArgs args;
  args.lr = lr();
  args.momentum = options_.momentum;
  args.trust = options_.trust;
  args.nesterov = options_.nesterov;
  args.gradient_scale = scale;
  context(stream.device()).kernels().lars_update(stream, slots, args);
}

Adamw::Adamw(NamedTensors parameters, const AdamwOptions& options)
    : Optimizer(std::move(parameters), options.lr, {"exp_avg", "exp_avg_sq"}), options_(options) {}

void Adamw::configure(const Tensor&, OptimizerSlot& slot) const {
  slot.weight_decay = options_.weight_decay;
}

void Adamw::update(Stream& stream, const std::vector<OptimizerSlot>& slots, double scale) {
  AdamwArgs args;
  args.lr = lr();
  args.beta1 = options_.beta1;
  args.beta2 = options_.beta2;
  args.epsilon = options_.epsilon;
  args.step = steps();
  args.gradient_scale = scale;
  context(stream.device()).kernels().adamw_update(stream, slots, args);
}

}  // namespace convoy
