// The default name of a target.
#pragma once

#include <string>
#include <string_view>

namespace sluice::config {

// iqn.2026-11.dev.sluice:<host name>
std::string default_target_name();
std::string target_name_for_host(std::string_view host_name);

}  // namespace sluice::config
