// Checks, before a process becomes its gateway, whether it could listen on the gateway's addresses.
#pragma once

#include <string>
#include <vector>

namespace sluice {

// Returns those of `addresses` ("ip:port") on which another process listens; `own` are this
// process's addresses. The sockets of a killed predecessor stay for some milliseconds: waits for
// them, at most 1 s. Addresses that can't be bound for another reason are not returned; the portal
// reports that later.
std::vector<std::string> ports_in_use(const std::vector<std::string>& addresses,
                                      const std::vector<std::string>& own);

}  // namespace sluice
