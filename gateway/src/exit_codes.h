// Exit codes of `sluice-gateway`, documented in CONFIGURATION.md.
#pragma once

namespace sluice {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;
constexpr int kStateInUse = 3;  // another process uses the state directory
constexpr int kReplaced = 4;    // another process has become this gateway

}  // namespace sluice
