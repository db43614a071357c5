// Data parallelism of one process in one line: DataParallel model(module). The batch is shared out
// over devices, which work at the same time; the weights stay where they are.
//
//     x: 5 images -+-> 2 on cpu:0, with the weights themselves  ---> 2 rows -+-> y: 5 rows on cpu:0
//                  +-> 2 on cpu:1, with copies for this forward ---> 2 rows -+
//                  +-> 1 on cpu:2, with copies for this forward ---> 1 row  -+
//
// Every forward copies the weights, so DistributedDataParallel is the faster one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/nn/module.h"

namespace convoy {

/// A module around another one, with the names of that one, without a prefix. Output and gradients
/// are those of one device; batch norms normalise over a device's own images, and their running
/// statistics are those of the first device's. Used by one thread.
class DataParallel : public Module {
 public:
  /// `devices`, of which the first one has the module's values and gets the output. Left out: all
  /// of the kind that the module is on, see device_count(); cpu devices share the cores then,
  /// unless OMP_NUM_THREADS says otherwise. `usage` for a device that is named twice or absent, and
  /// for a value that is not on the first device.
  explicit DataParallel(std::shared_ptr<Module> module, std::vector<Device> devices = {});

  /// x: a batch on any device. Devices get parts that differ by at most one image; with fewer
  /// images than devices the last ones get none. If the module throws, it is as it was before.
  Tensor forward(const Tensor& x) override { return forward_all({x}); }
  /// All inputs are batches of as many images, shared out in the same way.
  Tensor forward_all(const std::vector<Tensor>& inputs) override;

  const std::shared_ptr<Module>& module() const { return module_; }
  const std::vector<Device>& devices() const { return devices_; }

  Shape output_shape(const std::vector<Shape>& inputs) const override {
    return module_->output_shape(inputs);
  }
  std::int64_t multiply_adds(const std::vector<Shape>& inputs) const override {
    return module_->multiply_adds(inputs);
  }
  std::string describe() const override { return "DataParallel(" + module_->describe() + ")"; }

 private:
  void check_devices() const;
  void check_module() const;

  std::shared_ptr<Module> module_;
  std::vector<Device> devices_;
};

}  // namespace convoy
