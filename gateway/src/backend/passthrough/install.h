// Makes backend::open() know the kinds `sg` and `nvme`.
#pragma once

namespace sluice::passthrough {

void install();

}  // namespace sluice::passthrough
