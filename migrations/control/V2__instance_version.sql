-- Which version of the program an instance runs, so that an operator sees how far a deployment has got.
alter table instances add column version text not null default '';
