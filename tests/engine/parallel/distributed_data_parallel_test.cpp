// DistributedDataParallel: equal to one device for any shares and modules, the same bits on all
// ranks, and nobody is left waiting.
#include "engine/parallel/distributed_data_parallel.h"

#include <cmath>

#include "comm/host_communicator.h"
#include "comm/process_group.h"
#include "comm/thread_communicator.h"
#include "engine/autograd/backward.h"
#include "engine/autograd/grad_mode.h"
#include "engine/nn/layers.h"
#include "engine/ops/ops.h"
#include "tests/engine/parallel/networks.h"
#include "tests/engine/parallel/workers.h"
#include "tests/support/catch.h"
#include "tests/support/expect_error.h"

namespace convoy::testing {
namespace {

using Shares = std::vector<std::int64_t>;

constexpr double kTolerance = 1e-10;

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

Device oracle(int rank) {
  return {DeviceType::ref, rank};
}

TensorOptions doubles(int rank) {
  return {DType::f64, oracle(rank)};
}

// Images of all ranks, and of those before `rank`.
std::int64_t total(const Shares& shares, int rank) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < at(rank); ++i) sum += shares[i];
  return sum;
}

Trained train_share(const NetworkCase& network, Module& model, const Shares& shares, int rank) {
  const std::int64_t images = total(shares, static_cast<int>(shares.size()));
  return train(model, [&](int step) {
    const std::int64_t first = step * images + total(shares, rank);
    const Tensor x = network.images(first, shares[at(rank)], oracle(rank));
    mean_loss(model(x), network.targets(first, shares[at(rank)], oracle(rank))).backward();
  });
}

// Workers with a share of each batch; their modules begin with values of their own.
std::vector<Trained> train_workers(const NetworkCase& network, const Shares& shares) {
  std::vector<Trained> results(shares.size());
  run_workers(static_cast<int>(shares.size()), [&](int rank, HostCommunicator& communicator) {
    DistributedDataParallel model(network.make(oracle(rank), 7 + static_cast<std::uint64_t>(rank)),
                                  communicator);
    results[at(rank)] = train_share(network, model, shares, rank);
  });
  return results;
}

// Multiplies by a weight; its forward may fail.
class Scale : public Module {
 public:
  explicit Scale(const TensorOptions& options, std::int64_t size = 2, std::int64_t buffer = 1)
      : weight(register_parameter("weight", Tensor::ones({1, size}, options))),
        unused(register_parameter("unused", Tensor::ones({1}, options))),
        seen(register_buffer("seen", Tensor::zeros({buffer}, options))) {
    unused.set_requires_grad(false);
  }
  Tensor forward(const Tensor& x) override {
    if (fails) CONVOY_FAIL(data, "of a layer");
    return linear(x, weight);
  }

  Tensor weight, unused, seen;
  bool fails = false;
};

// Linear on one device, ReLU and Linear on the next; written as a user would.
class TwoDevices : public Module {
 public:
  TwoDevices(const Device& first, const Device& second, std::uint64_t seed)
      : second_(second),
        net1(register_module("net1", std::make_shared<Linear>(10, 10))),
        net2(register_module("net2", std::make_shared<Linear>(10, 5))) {
    initialize(seed);
    to(DType::f64);
    net1->to(first);
    net2->to(second);
  }
  Tensor forward(const Tensor& x) override { return (*net2)(relu((*net1)(x)).to(second_)); }

 private:
  Device second_;

 public:
  std::shared_ptr<Linear> net1, net2;
};

Tensor rows(std::int64_t count, double value, int rank) {
  return Tensor::full({count, 2}, value, doubles(rank));
}

// What a rank's `work` with a wrapped Scale leaves, of each of `ranks` ranks.
using ScaleWork = std::function<Values(int rank, DistributedDataParallel&, Scale&)>;
std::vector<Values> with_scales(int ranks, const DistributedOptions& options,
                                const ScaleWork& work) {
  std::vector<Values> results(at(ranks));
  run_workers(ranks, [&](int rank, HostCommunicator& communicator) {
    const auto scale = std::make_shared<Scale>(doubles(rank));
    DistributedDataParallel model(scale, communicator, options);
    results[at(rank)] = work(rank, model, *scale);
  });
  return results;
}

}  // namespace

TEST_CASE("distributed: equal to one device, whatever the shares; the same bits on all ranks") {
  for (const NetworkCase& network : network_cases()) {
    for (const Shares& shares : {Shares{2, 2}, {3, 2}, {1, 1, 1, 0}, {0, 4, 1}, {3}}) {
      const int ranks = static_cast<int>(shares.size());
      const Trained alone = train_alone(network, total(shares, ranks), 7);
      const std::vector<Trained> results = train_workers(network, shares);
      INFO(network.name << " on " << ranks << " ranks, the first has " << shares[0]);
      for (const Trained& result : results) {
        CHECK(distance(result.gradients, alone.gradients) < kTolerance);
        CHECK(distance(result.values, alone.values) < kTolerance);
        CHECK(result.gradients == results[0].gradients);
        CHECK(result.values == results[0].values);
      }
    }
  }
}

TEST_CASE("distributed: equal to one device where batch norms see the images of all ranks") {
  NetworkCase network = network_cases().back();
  network.make = [make = network.make](const Device& device, std::uint64_t seed) {
    const std::shared_ptr<Module> module = make(device, seed);
    set_batch_norm_mode(*module, BatchNormMode::micro);
    return module;
  };
  for (const Shares& shares : {Shares{2, 2}, {3, 2}, {0, 4, 1}}) {
    const int ranks = static_cast<int>(shares.size());
    const Trained alone = train_alone(network, total(shares, ranks), 7);
    std::vector<Trained> results(shares.size());
    run_workers(ranks, [&](int rank, HostCommunicator& communicator) {
      const auto group = communicator.split(0, rank);
      const auto module = network.make(oracle(rank), 7);
      set_batch_norm_group(*module, group.get());
      DistributedDataParallel model(module, communicator);
      results[at(rank)] = train_share(network, model, shares, rank);
    });
    INFO(ranks << " ranks, the first has " << shares[0]);
    for (const Trained& result : results) {
      CHECK(distance(result.gradients, alone.gradients) < kTolerance);
      CHECK(distance(result.values, alone.values) < kTolerance);
    }
  }
}

TEST_CASE("distributed: no_sync adds up micro-batches on each rank, the next one sends them") {
  const NetworkCase& network = network_cases()[1];
  const Shares shares{3, 2};  // images of a micro-batch; there are two
  const Trained alone = train_alone(network, 10, 7);
  std::vector<Trained> results(2);
  std::vector<Values> first(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    DistributedDataParallel model(network.make(oracle(rank), 7), communicator);
    const std::int64_t images = shares[at(rank)];
    auto micro_batch = [&](int step, std::int64_t part) {
      const std::int64_t begin = step * 10 + 2 * total(shares, rank) + part * images;
      const Tensor y = model(network.images(begin, images, oracle(rank)));
      return mse_loss(y, network.targets(begin, images, oracle(rank)),
                      0.5 / static_cast<double>(y.numel()));
    };
    results[at(rank)] = train(model, [&](int step) {
      {
        const auto scope = model.no_sync();
        micro_batch(step, 0).backward();
      }
      if (step == 0) first[at(rank)] = gradients_of(model);
      micro_batch(step, 1).backward();
    });
  });
  CHECK(distance(first[0], first[1]) > 1e-3);  // nothing was sent yet
  for (const Trained& result : results) {
    CHECK(distance(result.gradients, alone.gradients) < kTolerance);
    CHECK(distance(result.values, alone.values) < kTolerance);
    CHECK(result.values == results[0].values);
  }
}

TEST_CASE("distributed: a module over two devices takes host batches and answers on the first") {
  const NetworkCase& network = network_cases()[1];
  const Trained alone = train_alone(network, 5, 7);
  std::vector<Trained> results(2);
  std::vector<Device> devices(2);
  run_workers(2, [&](int rank, HostCommunicator& communicator) {
    const Device first = oracle(2 * rank), second = oracle(2 * rank + 1);
    const auto module = std::make_shared<TwoDevices>(first, second, 7 + rank);
    DistributedOptions options;
    options.device_ids = {first, second};
    DistributedDataParallel model(module, communicator, options);
    const std::int64_t images = rank == 0 ? 3 : 2;
    results[at(rank)] = train(model, [&](int step) {
      const std::int64_t begin = 5 * step + 3 * rank;
      const Tensor y = model(network.images(begin, images, "cpu:0"));
      devices[at(rank)] = y.device();
      mean_loss(y, network.targets(begin, images, first)).backward();
    });
  });
  for (int rank : {0, 1}) {
    CHECK(devices[at(rank)] == oracle(2 * rank));
    CHECK(distance(results[at(rank)].gradients, alone.gradients) < kTolerance);
    CHECK(distance(results[at(rank)].values, alone.values) < kTolerance);
    CHECK(results[at(rank)].values == results[0].values);
  }
}

TEST_CASE("distributed: the names are those of the module within") {
  const auto group = make_thread_communicators(1);
  const auto inner = network_cases()[2].make("ref:0", 1);
  const auto model = std::make_shared<DistributedDataParallel>(inner, *group[0]);
  auto names = [](const NamedTensors& tensors) {
    std::vector<std::string> result;
    for (const auto& [name, tensor] : tensors) result.push_back(name);
    return result;
  };
  const auto expected = names(inner->state_dict());
  CHECK(names(model->state_dict()) == expected);
  model->load_state_dict(network_cases()[2].make("ref:0", 2)->state_dict());
  CHECK(values_of(*inner) == values_of(*network_cases()[2].make("ref:0", 2)));
  Sequential outer;
  outer.add("a", model);
  CHECK(names(outer.state_dict()).front() == "a." + expected.front());
  CHECK(model->describe() == "DistributedDataParallel(Sequential)");
  CHECK(model->output_shape({{4, 3, 7, 7}}) == Shape{4, 2});
  CHECK(model->multiply_adds({{4, 3, 7, 7}}) == inner->multiply_adds({{4, 3, 7, 7}}));
  model->eval();
  CHECK(!inner->is_training());
}

TEST_CASE("distributed: all begin with rank 0's values, buffers and counters") {
  std::vector<Values> results(3);
  run_workers(3, [&](int rank, HostCommunicator& communicator) {
    const auto norm = std::make_shared<BatchNorm2d>(2);
    norm->to(oracle(rank));
    norm->weight.fill_(rank + 2);
    norm->running_var.fill_(rank + 5);
    norm->num_batches_tracked = rank + 9;
    const DistributedDataParallel model(norm, communicator);
    results[at(rank)] = values_of(model);
  });
  for (const Values& result : results) CHECK(result == Values{2, 2, 0, 0, 0, 0, 5, 5, 9});
}

TEST_CASE("distributed: running statistics are rank 0's before each forward in training") {
  // Rank r sees values of mean 10 r; the first forward adds a tenth of it.
  auto means = [](bool broadcast) {
    std::vector<Values> results(2);
    run_workers(2, [&](int rank, HostCommunicator& communicator) {
      const auto norm = std::make_shared<BatchNorm2d>(1);
      norm->to(DType::f64);
      norm->to(oracle(rank));
      DistributedOptions options;
      options.broadcast_buffers = broadcast;
      DistributedDataParallel model(norm, communicator, options);
      const Tensor x =
          Tensor::from(Values{10.0 * rank - 1, 10.0 * rank + 1}, {2, 1}, doubles(rank));
      auto note = [&] { results[at(rank)].push_back(norm->running_mean.item()); };
      for (int step = 0; step < 2; ++step) {
        model(x);
        note();
      }
      if (rank == 0) {  // others are not asked
        const NoGradScope no_grad;
        model(x);
      }
      model.eval();
      if (rank == 1) model(x);
      model.broadcast_buffers();
      note();
    });
    return results;
  };
  const auto together = means(true), apart = means(false);
  CHECK(together[0] == Values{0, 0, 0});
  CHECK(std::abs(together[1].at(0) - 1) < 1e-15);
  CHECK(std::abs(together[1].at(1) - 1) < 1e-15);  // 0.9 of rank 0's, which is 0
  CHECK(together[1].at(2) == 0);
  CHECK(std::abs(apart[1].at(1) - 1.9) < 1e-15);
  CHECK(apart[1].at(2) == 0);
}

TEST_CASE("distributed: the worker's own group, which may be left before the model goes") {
  const NetworkCase& network = network_cases()[0];
  const Trained alone = train_alone(network, 4, 0);
  std::vector<Trained> results(2);
  spawn(
      [&](int rank) {
        init_process_group("thread", 30);
        DistributedDataParallel model(network.make(oracle(rank), static_cast<std::uint64_t>(rank)));
        results[at(rank)] = train(model, [&](int step) {
          const std::int64_t first = 4 * step + 2 * rank;
          mean_loss(model(network.images(first, 2, oracle(rank))),
                    network.targets(first, 2, oracle(rank)))
              .backward();
        });
        destroy_process_group();
      },
      2);
  for (const Trained& result : results) CHECK(distance(result.values, alone.values) < kTolerance);
  expect_error(ErrorKind::usage, {"init_process_group"},
               [] { DistributedDataParallel(std::make_shared<Scale>(doubles(0))); });
}

TEST_CASE("distributed: several forwards in one backward, and a graph that is kept") {
  const auto results =
      with_scales(2, {}, [](int rank, DistributedDataParallel& model, Scale& scale) {
        const std::int64_t images = 1 + 2 * rank;
        const Tensor x = rows(images, 1 + rank, rank);
        const Tensor loss = mean(model(x)) + mean(square(model(x)));
        backward({loss}, {}, {.retain_graph = true});
        Values result = scale.weight.grad().to_vector<double>();
        scale.zero_grad();
        backward({loss});
        const Values again = scale.weight.grad().to_vector<double>();
        result.insert(result.end(), again.begin(), again.end());
        return result;
      });
  // With w = (1, 1): x + 2 (2 x) x, of x = 1 once and x = 2 three times.
  const double expected = (1 * 5 + 3 * 18) / 4.0;
  for (const Values& result : results) {
    CHECK(distance(result, Values(4, expected)) < 1e-13);
    CHECK(result == results[0]);
  }
}

TEST_CASE("distributed: a parameter that goes unused") {
  auto work = [](int rank, DistributedDataParallel& model, Scale& scale) {
    const Tensor y = model(rows(1, 1, rank));
    (rank == 0 ? sum(y) : sum(y) + sum(scale.unused)).backward();
    return scale.unused.grad().to_vector<double>();
  };
  auto train_unused = [&](bool find) {
    std::vector<Values> results(2);
    run_workers(2, [&](int rank, HostCommunicator& communicator) {
      const auto scale = std::make_shared<Scale>(doubles(rank));
      scale->unused.set_requires_grad();
      DistributedOptions options;
      options.find_unused_parameters = find;
      DistributedDataParallel model(scale, communicator, options);
      results[at(rank)] = work(rank, model, *scale);
    });
    return results;
  };
  for (const Values& result : train_unused(true)) CHECK(result == Values{0.5});
  expect_error(ErrorKind::usage, {"no gradient of unused on rank 0"}, [&] { train_unused(false); });
}

TEST_CASE("distributed: a forward that fails on one rank ends the others") {
  std::vector<std::string> seen(3);
  expect_error(ErrorKind::data, {"of a layer"}, [&] {
    with_scales(3, {}, [&](int rank, DistributedDataParallel& model, Scale& scale) {
      for (int step = 0; step < 3; ++step) {
        scale.fails = rank == 1 && step == 1;
        try {
          sum(model(rows(2, 1, rank))).backward();
        } catch (const Error& error) {
          seen[at(rank)] = error.text();
          throw;
        }
      }
      return Values();
    });
  });
  for (const std::string& text : seen) CHECK(text == "of a layer");
}

TEST_CASE("distributed: a worker that fails while its gradients are summed ends the others") {
  expect_error(ErrorKind::data, {"of a hook"}, [] {
    spawn(
        [](int rank) {
          init_process_group("thread", 30);
          const auto network = std::make_shared<TwoDevices>(oracle(rank), oracle(rank), 1);
          DistributedOptions options;
          options.buckets = {1, 1};  // each gradient at once
          DistributedDataParallel model(network, options);
          if (rank == 1) {  // the first layer's gradient comes last
            network->net1->weight.on_gradient([](Tensor&) { CONVOY_FAIL(data, "of a hook"); });
          }
          mean(model(Tensor::ones({2, 10}, doubles(rank)))).backward();
        },
        2);
  });
}

TEST_CASE("distributed: what is refused") {
  auto refused = [](const std::vector<std::string_view>& parts, int ranks,
                    const std::function<void(int, HostCommunicator&)>& work) {
    expect_error(ErrorKind::usage, parts, [&] { run_workers(ranks, work); });
  };
  refused({"no module"}, 1, [](int, HostCommunicator& communicator) {
    DistributedDataParallel(nullptr, communicator);
  });
  refused({"weight is on ref:1", "device_ids"}, 1, [](int, HostCommunicator& communicator) {
    DistributedOptions options;
    options.device_ids = {"ref:0"};
    DistributedDataParallel(std::make_shared<Scale>(doubles(1)), communicator, options);
  });
  refused({"cuda:0"}, 1, [](int, HostCommunicator& communicator) {
    DistributedOptions options;
    options.device_ids = {"cuda:0"};
    DistributedDataParallel(std::make_shared<Scale>(doubles(0)), communicator, options);
  });
  refused({"parameter 0", "(1, 2)", "(1, 3)", "rank 1"}, 2,
          [](int rank, HostCommunicator& communicator) {
            DistributedDataParallel(std::make_shared<Scale>(doubles(rank), 2 + rank), communicator);
          });
  refused({"value 2", "seen f64 (1)", "seen f64 (2)", "rank 1"}, 2,
          [](int rank, HostCommunicator& communicator) {
            const auto scale = std::make_shared<Scale>(doubles(rank), 2, 1 + rank);
            DistributedDataParallel(scale, communicator);
          });
  refused({"input is", "expected a batch"}, 1, [](int, HostCommunicator& communicator) {
    DistributedDataParallel model(std::make_shared<Scale>(doubles(0)), communicator);
    model(Tensor::ones({}, doubles(0)));
  });
  refused({"backward after it is gone"}, 1, [](int, HostCommunicator& communicator) {
    Tensor y;
    {
      DistributedDataParallel model(std::make_shared<Scale>(doubles(0)), communicator);
      y = model(rows(1, 1, 0));
    }
    sum(y).backward();
  });
}

TEST_CASE("distributed: after a backward that failed half-way there is no other one") {
  expect_error(ErrorKind::usage, {"the backward before this one failed"}, [] {
    with_scales(1, {}, [](int rank, DistributedDataParallel& model, Scale& scale) {
      const Tensor x = rows(1, 1, rank);
      const auto hook = scale.weight.on_gradient([](Tensor&) { CONVOY_FAIL(data, "of a hook"); });
      try {
        sum(model(x)).backward();
      } catch (const Error&) {
        scale.weight.remove_gradient_hook(hook);
      }
      sum(model(x)).backward();
      return Values();
    });
  });
}

}  // namespace convoy::testing
