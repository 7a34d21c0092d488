// Parses the sections for targets, hosts, LUNs and secrets; parse.cc parses the rest.
#pragma once

#include <string>
#include <vector>

#include "config/config.h"
#include "config/section.h"

namespace sluice::config {

struct SecretRules {
  std::string inline_fault;  // why `secret:` is refused in this file; empty: it is permitted
};

void read_targets(const Section& top, const SecretRules& rules, std::vector<TargetConfig>* targets);
void read_hosts(const Section& parent, const SecretRules& rules, std::vector<HostConfig>* hosts);
void read_discovery(const Section& section, const SecretRules& rules, DiscoveryConfig* discovery);

}  // namespace sluice::config
