#include "config/default_name.h"

#include <unistd.h>

#include <array>
#include <cctype>

namespace sluice::config {

std::string target_name_for_host(std::string_view host_name) {
  std::string host(host_name.substr(0, host_name.find('.')));
  for (char& c : host) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '-';
  }
  return "iqn.2026-11.dev.sluice:" + (host.empty() ? "gateway" : host);
}

std::string default_target_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return target_name_for_host(host.data());
}

}  // namespace sluice::config
