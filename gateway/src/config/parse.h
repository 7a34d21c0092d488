// Parses YAML into Config. Every error is reported with file and line; keys.h defines the keys.
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
  std::string fault;  // why secrets in it are refused; empty: they are permitted
};
Result<Source> read_source(const std::string& path);

// The file as written; the caller must call complete() next.
Result<Config> parse_config(const Source& source);

// The content of --chap-file. If others can read the file, it is refused as a whole.
struct ChapFile {
  std::optional<std::vector<HostConfig>> hosts;  // absent: any initiator
  DiscoveryConfig discovery;
};
Result<ChapFile> parse_chap_file(const Source& source);

// Parse text of the command line as the corresponding keys.
Result<PortalConfig> parse_portal(const std::string& address);
Result<std::string> parse_metrics(const std::string& address);  // "off" returns an empty text
Result<log::Level> parse_level(const std::string& name);

}  // namespace sluice::config
