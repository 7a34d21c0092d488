#include "base/safety_mutation.h"

#ifdef SLUICE_SAFETY_MUTATIONS

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sluice {
namespace {

struct Mutation {
  std::string_view name;
  Guard disables;
  Guard also = Guard::kNone;
};

constexpr std::array<Mutation, 32> kMutations = {{
    {"r1-two-owners", Guard::kOneOwner},
    {"r2-no-lock", Guard::kLock},
    {"r2-old-snapshot", Guard::kRecord},
    {"r4-serves-on", Guard::kFence},
    {"r5-ranges-freed", Guard::kRange},
    {"r6-no-pings", Guard::kPing},
    {"r6-never-closed", Guard::kClose},
    {"r6-age-unlooked", Guard::kAge},
    {"r6-late-delivery", Guard::kClose, Guard::kAge},
    {"r6-frozen", Guard::kStall},
    {"r6-no-watchdog", Guard::kWatchdog},
    {"r6-hung-reactor", Guard::kStall, Guard::kWatchdog},
    {"r6-old-tokens", Guard::kToken},
    {"r6-lingering", Guard::kLinger},
    {"r6-orphans", Guard::kToken, Guard::kLinger},
    {"r2-no-blocklist", Guard::kBlocklist},
    {"r2-lock-on-demand", Guard::kRbdLockMode},
    {"r12-rbd-cache", Guard::kRbdCache},
    {"chap-optional", Guard::kChap},
    {"any-origin", Guard::kPeer},
    {"any-image", Guard::kImage},
    {"any-pool", Guard::kMarker},
    {"r5-detached-freed", Guard::kDetachedRange},
    {"r15-unbounded-abort", Guard::kAbortBound},
    {"r14-stuck-unlimited", Guard::kStuckLimit},
    {"r15-no-stuck-share", Guard::kStuckShare},
    {"r15-device-unlimited", Guard::kDeviceCalls},
    {"r15-no-write-share", Guard::kWriteShare},
    {"r15-no-read-share", Guard::kReadShare},
    {"r15-no-release", Guard::kRelease},
    {"r15-whole-range", Guard::kPiece},
    {"r14-no-memory-share", Guard::kMemoryShare},
    {"r15-pool-unlimited", Guard::kGroupThreads},
}};

Mutation find_mutation(std::string_view text) {
  if (text.empty()) return {text, Guard::kNone};
  for (const Mutation& mutation : kMutations) {
    if (mutation.name == text) return mutation;
  }
  std::fprintf(stderr, "SLUICE_SAFETY_MUTATION: no safety mutation has this name\n");
  std::exit(2);
}

}  // namespace

const char* safety_mutation() {
  const char* text = std::getenv("SLUICE_SAFETY_MUTATION");
  if (text == nullptr) return "";
  find_mutation(text);
  return text;
}

bool mutation_disables(Guard guard) {
  static const Mutation self = find_mutation(safety_mutation());
  return guard == self.disables || guard == self.also;
}

}  // namespace sluice

#endif
