// hvdlite: synchronous data-parallel training with LibTorch on CPU clusters.
//
//   hvdlite::init();
//   Net model;
//   hvdlite::broadcast_parameters(model, /*root_rank=*/0);
//   hvdlite::DistributedOptimizer optimizer(
//       std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
//       model->named_parameters());
//   ... optimizer.zero_grad(); loss.backward(); optimizer.step(); ...
//   hvdlite::shutdown();
#pragma once

#include <hvdlite/broadcast_state.h>
#include <hvdlite/checkpoint.h>
#include <hvdlite/config.h>
#include <hvdlite/distributed_optimizer.h>
#include <hvdlite/elastic.h>
#include <hvdlite/errors.h>
#include <hvdlite/ops.h>
#include <hvdlite/process_set.h>
#include <hvdlite/run_report.h>
#include <hvdlite/sampler.h>
#include <hvdlite/sync_batch_norm.h>
#include <hvdlite/timeline.h>
#include <hvdlite/work.h>
#include <hvdlite/world.h>
