// Common code of the tests of this room: parses and completes YAML text.
#pragma once

#include <string>

#include "config/complete.h"
#include "config/parse.h"

namespace sluice::config {

inline Result<Config> read_yaml(const std::string& text, const std::string& fault = "") {
  Result<Config> config = parse_config({.file = "g.yaml", .text = text, .fault = fault});
  if (!config) return config;
  const Result<void> done = complete(&*config, "g.yaml");
  if (!done) return Error{done.error()};
  return config;
}

// A target open to any initiator, with the given LUN list.
inline std::string with_luns(const std::string& luns) {
  return "targets:\n- iqn: iqn.2026-11.example:t\n  hosts: [{initiators: ['*']}]\n  luns:\n" + luns;
}

}  // namespace sluice::config
