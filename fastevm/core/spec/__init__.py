"""The rules of the EVM as data: opcodes, parameters, EIPs, forks, and packed schedules."""
