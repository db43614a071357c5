// Modules and tensors in spawned workers, over the group that they have joined.
#include "comm/process_group.h"

#include <functional>

#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/optim/optimizer.h"
#include "engine/parallel/distributed_data_parallel.h"
#include "engine/parallel/tensor_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

constexpr double kTimeout = 20;

using Values = std::vector<double>;

}  // namespace

TEST_CASE("workers whose modules all lie on cpu:0 do not wait for each other's queues") {
  std::vector<Values> weights(3);
  spawn(
      [&](int worker) {
        init_process_group("thread", kTimeout);
        DistributedDataParallel model(std::make_shared<Linear>(10, 1));
        Sgd optimizer(model.named_parameters(), {.lr = 0.1});
        manual_seed(static_cast<std::uint64_t>(worker));
        for (int step = 0; step < 20; ++step) {
          optimizer.zero_grad();
          Tensor loss = mse_loss(model(Tensor::randn({4, 10})), Tensor::randn({4, 1}));
          loss.backward();
          optimizer.step();
          all_reduce(loss, Reduction::mean);
        }
        weights[worker] = model.parameters()[0].to_vector<double>();
        destroy_process_group();
      },
      3);
  CHECK(weights[1] == weights[0]);
  CHECK(weights[2] == weights[0]);
}

TEST_CASE("workers see what was made before them, and leave what they made") {
  Tensor before = Tensor::zeros({1000000});
  for (int i = 0; i < 20; ++i) before = before + Tensor::ones({1000000});
  std::vector<Tensor> made(2);
  spawn([&](int worker) { made[worker] = before + Tensor::full({1000000}, worker); }, 2);
  CHECK(sum(made[0]).item() == 20000000);
  CHECK(sum(made[1]).item() == 21000000);
}

TEST_CASE("tensors are reduced and broadcast in place") {
  std::vector<std::vector<Values>> results(3);
  spawn(
      [&](int worker) {
        init_process_group("thread", kTimeout);
        const auto apply = [&](const TensorOptions& options,
                               const std::function<void(Tensor)>& collective) {
          Tensor x = Tensor::from<float>({1, 2, 3, 4}, {4}, options);
          x = x * Tensor::full({4}, worker + 1, options);
          collective(x);
          results[worker].push_back(x.to_vector<double>());
        };
        const TensorOptions single{DType::f32, default_device()};
        const TensorOptions twice{DType::f64, {DeviceType::ref, worker}};
        for (const TensorOptions& options : {single, twice}) {
          apply(options, [](const Tensor& x) { all_reduce(x); });
          apply(options, [](const Tensor& x) { all_reduce(x, Reduction::mean); });
          apply(options, [](const Tensor& x) { all_reduce(x, Reduction::max); });
          apply(options, [](const Tensor& x) { broadcast(x, 1); });
        }
        destroy_process_group();
      },
      3);
  const std::vector<Values> once = {{6, 12, 18, 24}, {2, 4, 6, 8}, {3, 6, 9, 12}, {2, 4, 6, 8}};
  std::vector<Values> expected = once;
  expected.insert(expected.end(), once.begin(), once.end());
  for (const auto& result : results) CHECK(result == expected);
  expect_error(ErrorKind::usage, {"no process group"}, [] { all_reduce(Tensor::ones({1})); });
}

TEST_CASE("a tensor in a private layout is reduced by its values") {
  std::vector<std::vector<float>> before(2), after(2);
  bool is_private = false;
  spawn(
      [&](int worker) {
        init_process_group("thread", kTimeout);
        const NoGradScope no_grad;
        Conv2d conv(16, 16, 3);
        conv.to(default_device());
        const Tensor y = conv(Tensor::randn({2, 16, 9, 7}, {DType::f32, default_device()}));
        if (worker == 0) is_private = y.layout() != kPlain;
        before[worker] = y.to_vector<float>();
        all_reduce(y);
        after[worker] = y.to_vector<float>();
        destroy_process_group();
      },
      2);
  INFO("private: " << is_private);
  for (float& value : before[0]) value *= 2;  // both workers have drawn the same values
  CHECK(after[0] == before[0]);
  CHECK(after[1] == before[0]);
}

}  // namespace convoy::testing
