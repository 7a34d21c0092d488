// From YAML to Config. Every fault is told with file and line; see keys.h for what is known.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace sluice::config {

struct Source {
  std::string file;  // for messages
  std::string text;
  std::string fault;  // why secrets in it are refused; empty: they are fine
};
Result<Source> read_source(const std::string& path);

// The file as written: complete() (validate.h) must follow.
Result<Config> parse_config(const Source& source);

// What --chap-file holds. Refused as a whole when others can read it.
struct ChapFile {
  std::optional<std::vector<HostConfig>> hosts;  // absent: anybody
  DiscoveryConfig discovery;
};
Result<ChapFile> parse_chap_file(const Source& source);

// Text of the command line as the same keys would be read.
Result<PortalConfig> parse_portal(const std::string& address);
Result<std::string> parse_metrics(const std::string& address);  // "off" gives an empty text
Result<log::Level> parse_level(const std::string& name);

}  // namespace sluice::config
