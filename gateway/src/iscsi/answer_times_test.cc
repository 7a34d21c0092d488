#include "iscsi/answer_times.h"

#include <gtest/gtest.h>

namespace sluice::iscsi {
namespace {

TEST(AnswerTimesTest, ACommandTakesFromItsArrivalToTheEndOfTheBatchThatAnswersIt) {
  AnswerLog log;
  AnswerTimes session(log);
  session.add(100, 100);  // answered in the batch that brought it
  session.add(60, 100);   // answered in a later batch
  log.settle(7);
  EXPECT_EQ(session.count(), 2u);
  EXPECT_EQ(session.time(), 7 + 40 + 7);
  log.settle(1000);  // a batch without answers
  EXPECT_EQ(session.time(), 54);
  session.add(200, 200);
  log.settle(3);
  EXPECT_EQ(session.time(), 57);
}

TEST(AnswerTimesTest, ASessionThatEndsWithinABatchIsNotTouchedAtItsEnd) {
  AnswerLog log;
  AnswerTimes kept(log);
  kept.add(0, 0);
  {
    AnswerTimes ended(log);
    ended.add(0, 0);
  }
  log.settle(5);
  EXPECT_EQ(kept.time(), 5);
}

}  // namespace
}  // namespace sluice::iscsi
