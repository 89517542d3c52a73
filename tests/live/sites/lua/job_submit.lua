-- SPDX-License-Identifier: GPL-2.0-or-later
-- As published by several centres: a time limit is required, GPU jobs go to a GPU partition, long ones to another QOS.
local LONG = 24 * 60

local function gpus(job)
   return string.match(job.tres_per_node or job.tres_per_job or "", "gpu") ~= nil
end

function slurm_job_submit(job, partitions, uid)
   if job.time_limit == slurm.NO_VAL and uid ~= 0 then
      slurm.log_user("state a time limit with --time")
      return slurm.ESLURM_INVALID_TIME_LIMIT
   end
   if job.partition == nil and gpus(job) then
      job.partition = "gpu"
   end
   if job.qos == nil and job.time_limit ~= slurm.NO_VAL and job.time_limit > LONG then
      job.qos = "long"
   end
   if job.partition == "gpu" and not gpus(job) then
      slurm.log_user("partition gpu is for jobs with GPUs")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
   if job.comment == "forbidden" then
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

return slurm.SUCCESS
