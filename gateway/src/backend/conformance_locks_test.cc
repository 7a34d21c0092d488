// Of the suite in conformance.h: who may have a medium open (DESIGN R2).
#include <unistd.h>

#include <atomic>
#include <string>

#include "backend/conformance.h"

namespace sluice::backend {

TEST_P(Conformance, ASecondOpenerIsRefusedUntilTheFirstCloses) {
  auto second = open(subject_->spec);
  if (!subject_->locked) {
    EXPECT_TRUE(second.ok()) << "has no identity that another could open";
    return;
  }
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().find(subject_->spec.path), std::string::npos) << second.error();
  EXPECT_NE(second.error().find("in use"), std::string::npos) << second.error();
  EXPECT_NE(second.error().find("process " + std::to_string(getpid())), std::string::npos)
      << second.error();
  ASSERT_NO_FATAL_FAILURE(reopen([](Spec&) {}));
}

TEST_P(Conformance, CloseReleasesTheLockAndRetainsLentMemory) {
  ASSERT_EQ(driver_->write(65536, pattern(65536, 65536, 9)), 0);
  const uint8_t* lent = backend().borrow(65536, 65536);
  close_and_wait(backend());
  auto second = open(subject_->spec);
  EXPECT_TRUE(second.ok()) << second.error();
  if (lent) {
    EXPECT_EQ(Bytes(lent, lent + 65536), expected(pattern(65536, 65536, 9)));
  }
  close_and_wait(backend());
  backend_.reset();  // must not take the second one's lock or descriptor with it
  if (subject_->locked) {
    EXPECT_FALSE(open(subject_->spec).ok());
  }
}

// A second close() also calls its callback.
TEST_P(Conformance, EveryCloseCallbackRunsExactlyOnce) {
  std::atomic<unsigned> told[2] = {0, 0};
  for (auto& count : told) {
    backend().close([&count] {
      ++count;
      count.notify_all();
    });
  }
  driver_.reset();
  backend_.reset();
  for (auto& count : told) {
    count.wait(0);
    EXPECT_EQ(count, 1u);
  }
  ASSERT_NO_FATAL_FAILURE(reopen([](Spec&) {}));
  close_and_wait(backend());
  for (const auto& count : told) EXPECT_EQ(count, 1u);
}

}  // namespace sluice::backend
