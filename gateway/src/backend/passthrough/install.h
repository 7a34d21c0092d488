// Registers the kinds `sg` and `nvme` with backend::open().
#pragma once

namespace sluice::passthrough {

void install();

}  // namespace sluice::passthrough
