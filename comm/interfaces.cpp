#include "comm/interfaces.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "kernels/base/error.h"

namespace convoy {
namespace {

/// The address as text; empty for what is neither IPv4 nor an IPv6 address of more than one link.
std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  }
  return text;
}

/// Lower is better. Bridges have the same addresses on many hosts.
int order_of(const Interface& interface) {
  if (interface.loopback) return -1;
  for (const char* prefix : {"docker", "br-", "virbr", "lxc", "cni", "podman", "veth", "tun"}) {
    if (interface.name.starts_with(prefix)) return 2;
  }
  return interface.address.find(':') == std::string::npos ? 0 : 1;
}

std::string names_of(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces) text += (text.empty() ? "" : ", ") + describe(one);
  return text.empty() ? "none" : text;
}

std::vector<Interface> without_loopback(std::vector<Interface> all) {
  std::erase_if(all, [](const Interface& one) { return one.loopback; });
  return all;
}

void check_wanted(const std::vector<Interface>& all, const std::vector<Interface>& kept,
                  const std::string& wanted, bool several_hosts) {
  CONVOY_CHECK(!kept.empty(),
               "--iface {}: no interface of that name is up on this host, expected {}", wanted,
               names_of(all));
  CONVOY_CHECK(!several_hosts || !kept.front().loopback,
               "--iface {}: loopback reaches no other host, and several take part; expected {}",
               wanted, names_of(without_loopback(all)));
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* head = nullptr;
  if (::getifaddrs(&head) != 0) {
    CONVOY_FAIL(communication, "list of network interfaces: {}", std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(head, ::freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* entry = head; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP)) continue;
    const std::string address = address_text(entry->ifa_addr);
    if (address.empty()) continue;
    found.push_back({entry->ifa_name, address, (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return found;
}

std::vector<Interface> usable_interfaces(const std::vector<Interface>& all,
                                         const std::string& wanted, bool several_hosts) {
  std::vector<Interface> kept;
  for (const Interface& one : all) {
    const bool reaches = !several_hosts || !one.loopback;
    const bool fits = wanted.empty() ? reaches : one.name == wanted;
    if (fits) kept.push_back(one);
  }
  if (!wanted.empty()) check_wanted(all, kept, wanted, several_hosts);
  if (kept.empty()) {
    CONVOY_FAIL(communication, "no network interface reaches other hosts; up here: {}",
                names_of(all));
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Interface& a, const Interface& b) {
    return order_of(a) < order_of(b);
  });
  return kept;
}

std::string describe(const Interface& interface) {
  return fmt::format("{} ({})", interface.name, interface.address);
}

}  // namespace convoy
