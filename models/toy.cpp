#include "engine/nn/layers.h"
#include "models/networks.h"

namespace convoy {

std::shared_ptr<Network> make_toy() {
  auto network = std::make_shared<Network>("toy", 10, true, 5);
  network->add("net1", std::make_shared<Linear>(10, 10));
  network->add("relu", std::make_shared<Relu>());
  network->add("net2", std::make_shared<Linear>(10, 5));
  return network;
}

}  // namespace convoy
