// Whether a process could listen where its gateway shall, before it becomes that gateway.
#pragma once

#include <string>
#include <vector>

namespace sluice {

// Those of `addresses` ("ip:port") that another process listens on; `own` are this process' own. A
// killed predecessor's sockets live on for some milliseconds: waits for them, 1 s at most.
// Addresses that can't be bound for another reason are not in the result: the portal says so later.
std::vector<std::string> ports_in_use(const std::vector<std::string>& addresses,
                                      const std::vector<std::string>& own);

}  // namespace sluice
