#include "base/canary.h"

#ifdef SLUICE_CANARIES

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

constexpr std::array<std::pair<std::string_view, Guard>, 12> kNames = {{
    {"r1-two-owners", Guard::kOneOwner},
    {"r2-no-lock", Guard::kLock},
    {"r2-old-snapshot", Guard::kRecord},
    {"r4-serves-on", Guard::kFence},
    {"r5-ranges-freed", Guard::kRange},
    {"r6-late-delivery", Guard::kSilence},
    {"r6-frozen", Guard::kStall},
    {"r6-hung-reactor", Guard::kStalledAlone},
    {"r6-old-tokens", Guard::kToken},
    {"r2-no-blocklist", Guard::kBlocklist},
    {"r2-lock-on-demand", Guard::kRbdLockMode},
    {"r12-rbd-cache", Guard::kRbdCache},
}};

Guard named(std::string_view text) {
  if (text.empty()) return Guard::kNone;
  for (const auto& [name, guard] : kNames) {
    if (name == text) return guard;
  }
  std::fprintf(stderr, "SLUICE_CANARY: no canary has this name\n");
  std::exit(2);
}

}  // namespace

const char* canary() {
  const char* text = std::getenv("SLUICE_CANARY");
  if (text == nullptr) return "";
  named(text);
  return text;
}

bool lacks(Guard guard) {
  static const Guard off = named(canary());
  return guard == off;
}

}  // namespace sluice

#endif
