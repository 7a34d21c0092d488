// Settings of the whole process, before its first thread.
#pragma once

namespace sluice {

// Permits as many descriptors as the system does. Without `core_dumps` the process writes no core
// file and other users cannot trace it (DESIGN R14).
void harden(bool core_dumps);

}  // namespace sluice
